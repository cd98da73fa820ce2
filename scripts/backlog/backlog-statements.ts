/** Times the queue's own functions and the operator's commands on a database, one by one, while no server runs. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { addOverdue, deadDomain } from '#lab/database/backlog-rows.ts';
import { median } from '#lab/load/figures.ts';
import {
  claimBacklogs,
  claimExpired,
  findDue,
  listBacklogs,
  releaseLeases,
  takeBack,
} from '#mail/queue/rows/lease-statements.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { transactionsOf } from '../bench/floor-transactions.ts';

/** Milliseconds by operation. */
export type Times = Record<string, number>;

const repeats = 15;
const mails = 100;

/** Medians; the first run, with a cold cache, counts like the others. */
export async function timeStatements(db: Db): Promise<Times> {
  // The same mail to claim on both sides, whatever else waits.
  await addOverdue(db, deadDomain(1), repeats * mails);
  const { org_id: orgId } = await db('deliveries')
    .where({ domain: deadDomain(1) })
    .orderBy('id', 'desc')
    .first();
  const lane = { domain: deadDomain(1), orgId, limit: mails };
  const terms = { node: 'backlog', now: Date.now(), leaseMs: 60_000 };
  const transactions = await transactionsOf(
    db,
    Buffer.alloc(4096, 'All of this is an ordinary line of a mail.\r\n'),
  );
  const times: Times = {};
  const time = async <T>(name: string, run: () => Promise<T>) => {
    const all: number[] = [];
    let last: T;
    for (let n = 0; n < repeats; n++) {
      const begun = performance.now();
      last = await run();
      all.push(performance.now() - begun);
    }
    times[name] = median(all);
    return last!;
  };
  await time(`accept ${mails}`, () => transactions.accept(mails));
  await time(`record ${mails}`, () => transactions.record(mails));
  await time('look for what is due', () =>
    findDue(db, { after: Date.now() - 3000, now: Date.now(), max: 10_000 }),
  );
  await time('walk along 200 lanes', () => listBacklogs(db, { after: null, now: Date.now(), limit: 200 }));
  await time(`claim ${mails}, and give them back`, async () =>
    releaseLeases(db, 'backlog', await claimBacklogs(db, [lane], terms)),
  );
  await time('claim what is too old', () => claimExpired(db, 1, { ...terms, now: 0 }));
  await time('take over dead leases', () => takeBack(db, 'backlog', Date.now(), 60_000, 'expired'));
  return times;
}

const postern = join(import.meta.dirname, '../postern');

/** Each command once, after one that warms the compile cache. */
export async function timeCommands(db: Db, env: Record<string, string>): Promise<Times> {
  const { org_id: orgId } = await db('api_keys').first('org_id');
  const run = promisify(execFile);
  const command = async (...args: string[]) => {
    const begun = performance.now();
    await run(postern, args, { env: { PATH: process.env.PATH, ...env }, maxBuffer: 2 ** 28 });
    return performance.now() - begun;
  };
  await command('config');
  const reason = ['--reason', 'measured'];
  const commands = [
    ['queue', 'summary'],
    ['queue', 'list'],
    ['queue', 'list', '--domain', deadDomain(1)],
    ['queue', 'list', '--org', orgId],
    ['queue', 'hold', '--domain', deadDomain(1), ...reason],
    ['queue', 'release', '--domain', deadDomain(1), ...reason],
  ];
  const times: Times = {};
  for (const args of commands) times[args.slice(0, 3).join(' ')] = await command(...args);
  return times;
}
