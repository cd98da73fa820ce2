/** Starts a server that stays in the foreground, waits until it listens, stops it, and collects its output. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { until } from '../until.ts';

export interface Server {
  /** All its output. */
  log(): string;
  stop(): Promise<void>;
}

/**
 * Resolves when the server listens. If it does not come up, stops it and rejects with its output. The server has its own
 * process group, so that Ctrl-C does not reach it and its helpers end with it.
 */
export async function serve(command: string[], isThere: () => Promise<boolean>): Promise<Server> {
  const child = spawn(command[0]!, command.slice(1), { detached: true });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
  const ended = once(child, 'exit');
  const isGone = () => child.exitCode !== null || child.signalCode !== null;
  const stop = async () => {
    if (!isGone()) process.kill(-child.pid!, 'SIGTERM');
    await ended;
  };
  try {
    await until(async () => isGone() || (await isThere()), { what: 'it to serve' });
    if (isGone()) throw new Error('it ended');
  } catch (error) {
    await stop();
    throw new Error(`${command.join(' ')} does not start, ${(error as Error).message}: ${output}`);
  }
  return { log: () => output, stop };
}
