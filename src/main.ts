/**
 * The process: reads the settings, starts the service (server/start.ts), stops it on a signal, restarts it after the clock
 * was set back. Importing this file has no effect.
 */
import { flushCompileCache } from 'node:module';
import ms from 'ms';
import { watchProcess } from '#operate/metrics/process-metrics.ts';
import { steppedTimers, systemClock } from '#platform/base/clock.ts';
import { createLog } from '#platform/base/log.ts';
import { isJournal, markOf } from '#platform/base/systemd/journal.ts';
import { createServiceManager } from '#platform/base/systemd/service-manager.ts';
import { clearHeapFlags } from '#platform/base/v8-flags.ts';
import { type Config, loadConfig } from '#platform/settings/config.ts';
import { hostnameAdvice } from '#platform/settings/hostname-advice.ts';
import { besideService, commandPrefix } from '#platform/settings/installation.ts';
import { otherVariables } from '#platform/settings/setting-sources.ts';
import { watchClock } from '#server/clock-jump.ts';
import { type Running, start } from '#server/start.ts';
import { describeStartError, firstSteps } from '#server/start-messages.ts';

const serviceManager = createServiceManager(systemClock);

async function run(): Promise<void> {
  process.title = 'postern';
  clearHeapFlags();
  // The database and the logs contain people's mail, and a data directory created by hand may be readable by everyone.
  process.umask(0o077);
  Object.assign(process.env, otherVariables(process.env));
  const config = loadConfig();
  const log = createLog(config);
  const running = await start(config, { log, watchProcess });
  superviseProcess(config, log, running);
  // Signals are handled from here on: a reader of this line may stop the process at once.
  log.info(`Postern serves at ${running.url}`);
  // The next start uses what this one has compiled (scripts/node.sh), even if this process is killed.
  flushCompileCache();
  if (running.setUpUrl) log.info(`To set up the dashboard (once, within 24 hours): ${running.setUpUrl}`);
  if (running.isFresh) for (const line of firstSteps(commandPrefix(config))) log.info(line);
  for (const advice of [besideService(config), hostnameAdvice(config)]) if (advice) log.warn(advice);
}

/** Stops on a signal, restarts after the clock was set back; one at a time, in the order in which they were asked for. */
function superviseProcess(config: Config, log: ReturnType<typeof createLog>, first: Running): void {
  let running = first;
  let isStopping = false;
  let last = Promise.resolve();
  const enqueue = (step: () => Promise<void>) => {
    last = last.then(step).catch(exitWithError);
  };

  /** The shaping file and certificates are read again by themselves; the unit has checked the settings. */
  const reload = () => {
    serviceManager.reloading();
    log.info(
      'SIGHUP: the shaping file and certificates are always read again within ten seconds; restart Postern to apply other settings',
    );
    serviceManager.ready();
  };

  const stopOn = (signal: string) => {
    if (isStopping) return;
    isStopping = true;
    log.info(`${signal}: stopping`);
    serviceManager.stopping();
    enqueue(async () => {
      await running.stop();
      await log.settled();
      process.exit(0);
    });
  };
  // `once`: a second signal ends the process immediately.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, stopOn);
  // In a terminal, SIGHUP says that the terminal was closed (the shell may send it too), so the process stops.
  // Elsewhere an operator or logrotate sends it to mean "reload", which must not stop mail.
  process.on('SIGHUP', process.stdout.isTTY ? stopOn : reload);

  serviceManager.ready();
  serviceManager.startWatchdog(() => running.hasProgressed());

  // With the polls.
  watchClock({ now: systemClock.now, after: steppedTimers() }, (byMs) =>
    enqueue(async () => {
      if (isStopping) return;
      if (byMs > 0) return running.noteLeap(byMs);
      log.warn(`the clock was set back by ${ms(-byMs, { long: true })}: restarting the service`);
      await running.stop();
      running = await start(config, { log, watchProcess });
      log.info(`Postern serves again at ${running.url}`);
    }),
  );
}

function exitWithError(error: NodeJS.ErrnoException): never {
  process.stderr.write(`${isJournal(2) ? markOf('error') : ''}postern: ${describeStartError(error)}\n`);
  process.exit(1);
}

if (import.meta.main) run().catch(exitWithError);
