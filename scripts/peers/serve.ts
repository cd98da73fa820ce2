/** A server that stays in the foreground: started, waited for, stopped, with what it said in between. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { until } from '../../test/helpers/until.ts';

export interface Server {
  /** All that it has said. */
  log(): string;
  stop(): Promise<void>;
}

/**
 * Resolves when it is there; rejects with what it says when it does not come up, having left nothing running. It is
 * in a process group of its own: Ctrl-C at our terminal is for us, and its helpers end with it.
 */
export async function serve(command: string[], isThere: () => Promise<boolean>): Promise<Server> {
  const child = spawn(command[0]!, command.slice(1), { detached: true });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (said += chunk));
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
    throw new Error(`${command.join(' ')} does not start, ${(error as Error).message}: ${said}`);
  }
  return { log: () => said, stop };
}
