/** The long tests of scripts/, on a smaller scale: each says what it promises in its header, and exits 1 if that does not hold. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';

const folder = join(import.meta.dirname, '../../scripts');

const runs = {
  'kill -9 under load loses no email that was answered 200': 'soak.ts --rounds 3 --senders 8 --unkilled 1',
  'three nodes, killed at random: nothing is lost, and limits and credits are exact':
    'nodes.ts --mails 3000 --longest 6',
  'PostgreSQL is killed, stopped, frozen and slow: every node goes on by itself, and nothing is lost':
    'postgres-away.ts --rounds 4 --longest 20',
};

for (const [promise, command] of Object.entries(runs)) {
  test.serial(`${promise} (${command})`, async (t) => {
    t.timeout(600_000);
    const [script, ...args] = command.split(' ');
    const run = promisify(execFile)(process.execPath, [join(folder, script!), ...args]);
    await t.notThrowsAsync(run, (await run.catch((error) => error)).stdout);
  });
}
