/**
 * What every script does around its work: a temporary directory, the things that it starts, Ctrl-C, and cleaning up.
 *
 *   const faults = await perform('demo', async (stage) => {
 *     const dns = await stage.start(startDns(zone), (dns) => dns.close());
 *     …
 *     return faults;
 *   });
 *
 * Everything that `start` started is stopped, the last first, when the callback returns, fails or is interrupted. Something
 * that is still starting is waited for first, so that nothing is left behind. The directory is removed last. On Ctrl-C the
 * callback is not notified: the things that it works with are stopped.
 */
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';
import { orAborted } from '#platform/base/waits.ts';

export interface Stage {
  /** Empty at first, and accessible to all users (0755) for programs that drop root's privileges. */
  directory: string;
  interrupted: AbortSignal;
  start<T>(starting: Promise<T>, stop: (it: T) => Promise<unknown>): Promise<T>;
  /** A nested stage, which stops what it started when its callback returns. */
  nested<T>(body: (stage: Stage) => Promise<T>): Promise<T>;
}

/** Returns the faults that the callback returned, and all other errors. Never rejects. */
export async function runScript(name: string, body: (stage: Stage) => Promise<string[]>): Promise<string[]> {
  const interrupted = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.on(signal, () => interrupted.abort(new Error(`${signal}: stopped`)));
  }
  return runStage(name, interrupted.signal, body).catch((error) => [error.message]);
}

async function runStage<T>(
  name: string,
  interrupted: AbortSignal,
  body: (stage: Stage) => Promise<T>,
): Promise<T> {
  const stops: (() => Promise<unknown>)[] = [];
  const directory = await mkdtemp(join(tmpdir(), `postern-${name}-`));
  stops.push(() => rm(directory, { recursive: true, force: true }));
  const stage: Stage = {
    directory,
    interrupted,
    async start(starting, stop) {
      stops.push(() =>
        starting.then(stop, () => {
          // The caller of `start` got this error.
        }),
      );
      const it = await starting;
      interrupted.throwIfAborted();
      return it;
    },
    nested: (inner) => stage.start(runStage(name, interrupted, inner), async () => {}),
  };
  try {
    await chmod(directory, 0o755);
    return await orAborted(body(stage), interrupted);
  } finally {
    await endAll(stops);
  }
}

async function endAll(stops: (() => Promise<unknown>)[]): Promise<void> {
  const errors: string[] = [];
  for (const stop of stops.reverse()) await stop().catch((error) => errors.push(error.message));
  if (errors.length > 0) throw new Error(`while stopping: ${errors.join('; ')}`);
}

/** Exits 2 if the script cannot be run here. */
export function endIf(obstacle: string | null): void {
  if (obstacle === null) return;
  console.error(obstacle);
  process.exit(2);
}

/** Parses the command line; on an unknown option, prints the usage and exits 2. */
export function readOptions<Options extends ParseArgsOptionsConfig>(usage: string, options: Options) {
  try {
    return parseArgs({ options }).values;
  } catch (error) {
    console.error(`${(error as Error).message}\nusage: ${usage}`);
    process.exit(2);
  }
}

/** The Postern settings given with `--set NAME=VALUE`. */
export function settingsOf(assignments: string[]): Record<string, string> {
  return Object.fromEntries(
    assignments.map((one) => {
      const at = one.indexOf('=');
      return [one.slice(0, at), one.slice(at + 1)];
    }),
  );
}
