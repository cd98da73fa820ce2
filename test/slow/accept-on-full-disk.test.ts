/**
 * A file that cannot grow, on SQLite, in the middle of accepting mails that are more together than SQLite keeps in memory:
 * what was not accepted has left nothing anywhere. `ulimit -f` is a full disk that needs no disk.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { setQuota } from '#accounts/rows/credit-ledger.ts';
import { now, openQueue } from '#lab/database/queue-rows.ts';

const run = promisify(execFile);
const script = join(import.meta.dirname, '../lab/accept-large.ts');
/** Of 512 bytes, or of 1024 in some shells: 16 or 32 MB. */
const blocks = 31_250;

test('what is answered with an error has left nothing behind', async (t) => {
  const { db, dataDir, orgId } = await openQueue(t, 'sqlite');
  await db.transaction((trx) => setQuota(trx, orgId, 1000, now));
  const counted = async (table: string) => Number((await db(table).count('* as n').first())?.n);
  const entriesBefore = await counted('credit_entries');

  // A write past the limit is an error only for a process that does not die of the signal.
  const limited = `trap '' XFSZ; ulimit -f ${blocks}; exec "$0" "$@"`;
  const { stdout } = await run('sh', ['-c', limited, process.execPath, script, dataDir, orgId]);
  const told = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const taken = told.reduce((sum, part) => sum + part.taken, 0);
  t.true(taken > 0);
  for (const { error } of told) t.regex(error, /SQLITE_(FULL|IOERR)/);

  for (const table of ['emails', 'messages', 'deliveries', 'events', 'idempotency'])
    t.is(await counted(table), taken, table);
  t.is((await counted('credit_entries')) - entriesBefore, taken);
  const org = await db('organizations').first('quota_used', 'ledger_total');
  t.deepEqual(org, { quota_used: taken, ledger_total: 1000 - taken });
  const usage = await db('daily_usage').first('emails');
  t.is(usage?.emails, taken);
});
