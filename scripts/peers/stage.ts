/**
 * What every script does around its work: a directory of its own, what it starts, Ctrl-C, and the end of it all.
 *
 *   const faults = await perform('demo', async (stage) => {
 *     const dns = await stage.start(startDns(zone), (dns) => dns.close());
 *     …
 *     return faults;
 *   });
 *
 * Whatever was begun by `start` is ended, the last first, when the play is over, fails or is interrupted; something
 * that was just starting is waited for first, so that nothing is left behind. The directory goes last. A play is not
 * asked whether it heeds the signal: it is left alone, and what it works with is taken away.
 */
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';
import { orAborted } from '../../src/base/abort.ts';

export interface Stage {
  /** Empty at first; entered by everybody (0755), for programs that give up root's privileges. */
  directory: string;
  interrupted: AbortSignal;
  start<T>(starting: Promise<T>, stop: (it: T) => Promise<unknown>): Promise<T>;
  /** A stage within this one, whose things end when its play does. */
  scene<T>(play: (stage: Stage) => Promise<T>): Promise<T>;
}

/** Returns what the play says is wrong; to that is added what went wrong otherwise. Rejects never. */
export async function perform(name: string, play: (stage: Stage) => Promise<string[]>): Promise<string[]> {
  const interrupted = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.on(signal, () => interrupted.abort(new Error(`${signal}: stopped`)));
  }
  return playOn(name, interrupted.signal, play).catch((error) => [error.message]);
}

async function playOn<T>(
  name: string,
  interrupted: AbortSignal,
  play: (stage: Stage) => Promise<T>,
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
          // Whoever waited for the start was told.
        }),
      );
      const it = await starting;
      interrupted.throwIfAborted();
      return it;
    },
    scene: (inner) => stage.start(playOn(name, interrupted, inner), async () => {}),
  };
  try {
    await chmod(directory, 0o755);
    return await orAborted(play(stage), interrupted);
  } finally {
    await endAll(stops);
  }
}

async function endAll(stops: (() => Promise<unknown>)[]): Promise<void> {
  const troubles: string[] = [];
  for (const stop of stops.reverse()) await stop().catch((error) => troubles.push(error.message));
  if (troubles.length > 0) throw new Error(`while stopping: ${troubles.join('; ')}`);
}

/** The options on the command line; on one that is not known, says how it is used and exits 2. */
export function readOptions<Options extends ParseArgsOptionsConfig>(usage: string, options: Options) {
  try {
    return parseArgs({ options }).values;
  } catch (error) {
    console.error(`${(error as Error).message}\nusage: ${usage}`);
    process.exit(2);
  }
}

/** What `--set NAME=VALUE` gave, for Postern's settings. */
export function settingsOf(given: string[]): Record<string, string> {
  return Object.fromEntries(
    given.map((one) => {
      const at = one.indexOf('=');
      return [one.slice(0, at), one.slice(at + 1)];
    }),
  );
}
