/**
 * `postern top`: the service at work, on a screen that is redrawn every two seconds; in a pipe, with --json or with --once
 * one snapshot.
 *
 * Rates and replies come from the mail log of this data directory as it grows, which costs the server nothing; the queue
 * comes from the database. It is read at most once for each frame, and for at most a twenty-fifth of the time: with a
 * million mails that is about every 30 s. The screen shows the age of the result.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { readDestinationStatuses } from '../../db/queue/destination-status-rows.ts';
import { summarizeQueue } from '../../db/queue/queue-view.ts';
import { mailLogFile } from '../../mail/mail-log.ts';
import { queueRows } from '../../operate/explain/queue-rows-by-destination.ts';
import { readStatus, type Status } from '../../operate/status/read-status.ts';
import { spanOption } from '../args/arguments.ts';
import { type CommandContext, notServed } from '../command-context.ts';
import { type LogFile, openLog } from '../maillog/log-file.ts';
import { readLine } from '../maillog/log-filter.ts';
import { minutesKept, Traffic } from '../maillog/traffic.ts';
import { openScreen } from '../render/screen.ts';
import { blocksOf, documentOf } from '../render/top-plain.ts';
import { type RenderOptions, render, type Snapshot, sorts } from '../render/top-view.ts';

interface Options {
  once?: boolean;
  every: number;
}

const minInterval = 200;
/** The pause between two reads of the queue, as a multiple of the duration of the first. */
const pauseFactor = 24;
/** At most this much of the last hour of the log is read. */
const maxBytes = 32 * 1024 * 1024;

export function topCommands(program: Command, context: CommandContext): void {
  program
    .command('top')
    .description('Watch mail rates, the queue by destination, slow destinations and the last replies live.')
    .option('--once', 'print one snapshot and exit, as in a pipe')
    .addOption(spanOption('--every <TIME>', 'time between two updates', '2s'))
    .action((options: Options) => top(context, options));
}

async function top(context: CommandContext, options: Options): Promise<void> {
  const { out } = context;
  const monitor = await createMonitor(context);
  try {
    if (out.json || options.once || !out.terminal) {
      await monitor.update();
      await monitor.queueRead();
      const snapshot = monitor.snapshot();
      if (snapshot.problem !== null) throw new Error(snapshot.problem);
      if (!snapshot.isServed) out.warn(notServed);
      out.print(documentOf(snapshot), ...blocksOf(snapshot, out.columns));
    } else await watch(context, monitor, Math.max(options.every, minInterval));
  } finally {
    await monitor.close();
  }
}

type Monitor = Awaited<ReturnType<typeof createMonitor>>;

async function createMonitor(context: CommandContext) {
  const { now } = context;
  const { hostname, dataDir } = context.config();
  const db = await context.db();
  const log = await openLog(mailLogFile(dataDir));
  const traffic = new Traffic();
  await readPast(log, traffic, now() - minutesKept * 60_000);
  let queue: Snapshot['queue'] = { lines: [], at: 0 };
  let status: Status | null = null;
  let isServed = true;
  let nextReadAt = 0;
  let nextStatusAt = 0;
  let reading: Promise<void> | null = null;
  let problem: string | null = null;

  async function readQueue(): Promise<void> {
    const at = now();
    const begun = performance.now();
    try {
      const queues = await summarizeQueue(db, { now: at, bounds: [] });
      queue = { lines: queueRows(queues, await readDestinationStatuses(db, at, isServed), false, at), at };
      problem = null;
    } catch (error) {
      problem = `the queue cannot be read: ${(error as Error).message.split(' - ').at(-1)}`;
    }
    nextReadAt = now() + pauseFactor * (performance.now() - begun);
    reading = null;
  }

  async function refreshStatus(): Promise<void> {
    if (now() < nextStatusAt) return;
    const begun = performance.now();
    try {
      status = await readStatus({ db, config: context.config(), now: now(), served: isServed });
    } catch (error) {
      problem = `the status cannot be read: ${(error as Error).message.split(' - ').at(-1)}`;
    }
    nextStatusAt = now() + pauseFactor * (performance.now() - begun);
  }

  return {
    /** Reads the new lines of the log and the status, and starts to read the queue if it is time. */
    async update(): Promise<void> {
      isServed = await context.isServed().catch(() => isServed);
      await refreshStatus();
      for await (const lines of log.added()) for (const line of lines) addLine(traffic, line);
      if (now() >= nextReadAt) reading ??= readQueue();
    },
    /** Waits until the queue has been read. */
    async queueRead(): Promise<void> {
      await reading;
    },
    snapshot: (): Snapshot => ({
      at: now(),
      hostname,
      queue,
      status,
      isServed,
      problem,
      ...traffic.read(now()),
    }),
    close: () => log.close(),
  };
}

function addLine(traffic: Traffic, text: string): number | null {
  const line = readLine(text);
  if (!line) return null;
  traffic.add(line);
  return Date.parse(line.time);
}

/** Reads backward from the end, to `since` or up to `maxBytes`. */
async function readPast(log: LogFile, traffic: Traffic, since: number): Promise<void> {
  let bytes = 0;
  let oldest = Number.POSITIVE_INFINITY;
  for await (const lines of log.backward(() => true, since)) {
    for (const text of lines) {
      bytes += text.length;
      oldest = Math.min(oldest, addLine(traffic, text) ?? oldest);
    }
    if (oldest < since) break;
    if (bytes > maxBytes) return traffic.coversSince(oldest);
  }
  traffic.coversSince(since);
}

/** Redraws the screen until q or Ctrl-C is pressed or a signal ends the process, and then restores the terminal. */
async function watch(
  { process, abortOn }: CommandContext,
  monitor: Monitor,
  intervalMs: number,
): Promise<void> {
  const options: RenderOptions = { sort: sorts[0], isPaused: false };
  const ended = new AbortController();
  let snapshot = monitor.snapshot();
  const end = () => {
    screen.close();
    ended.abort();
  };
  const keys: Record<string, () => void> = {
    q: end,
    '\x03': end,
    p: () => {
      options.isPaused = !options.isPaused;
    },
    s: () => {
      options.sort = sorts[(sorts.indexOf(options.sort) + 1) % sorts.length]!;
    },
  };
  const draw = () => screen.draw(render(snapshot, screen.size(), options));
  const onKey = (key: string) => {
    keys[key]?.();
    draw();
  };
  const screen = openScreen(process.stdin, process.stdout, { onKey, onResize: draw });
  abortOn('SIGTERM', 'SIGHUP', 'SIGINT').onabort = end;
  try {
    // The first frame shows the queue.
    await monitor.update();
    await monitor.queueRead();
    while (!ended.signal.aborted) {
      if (!options.isPaused) {
        await monitor.update();
        snapshot = monitor.snapshot();
      }
      draw();
      await sleep(intervalMs, undefined, { signal: ended.signal }).catch(() => {});
    }
  } finally {
    screen.close();
  }
}
