/** The ledger by day: each day whole, its entries summed by reason, in pages of days. */
import test from 'ava';
import { v7 as uuid } from 'uuid';
import { ledgerByDay } from '#accounts/rows/credit-ledger.ts';
import { insertOrganization } from '#accounts/rows/organizations.ts';
import { kinds } from '#lab/database/databases.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { insertRows } from '#platform/database/engine/insert-rows.ts';

const day = 86_400_000;
const first = Date.UTC(2026, 2, 1);
const endOfTime = 2 ** 48 - 1;

for (const database of kinds) {
  test(`${database}: entries are summed by day and reason, and no day is cut by a page`, async (t) => {
    const { db } = await startWorld(t, { database });
    const orgId = await insertOrganization(db, 'Ledger', first);
    const entry = (at: number, change: number, reason: string, balance: number | null) => {
      return { id: uuid({ msecs: at }), org_id: orgId, at, change, reason, balance };
    };
    const rows = [
      entry(first, 100, 'wallet', 100),
      entry(first + 1, -1, 'send', 99),
      entry(first + day - 1, -2, 'send', 97),
      entry(first + day, -3, 'send', 94),
      entry(first + 4 * day, 1, 'canceled', 95),
      entry(first + 4 * day + 1, -1, 'quota unlimited', null),
    ];
    await db.transaction((trx) => insertRows(trx, 'credit_entries', rows));
    const read = (before: number, limit: number, maxEntries = 100) =>
      ledgerByDay(db, orgId, { before, limit, maxEntries });
    const oldest = {
      day: first,
      balance: 97,
      reasons: [
        { reason: 'send', entries: 2, change: -3 },
        { reason: 'wallet', entries: 1, change: 100 },
      ],
    };
    const second = { day: first + day, balance: 94, reasons: [{ reason: 'send', entries: 1, change: -3 }] };
    const newest = {
      day: first + 4 * day,
      balance: null,
      reasons: [
        { reason: 'canceled', entries: 1, change: 1 },
        { reason: 'quota unlimited', entries: 1, change: -1 },
      ],
    };
    t.deepEqual(await read(endOfTime, 31), { days: [newest, second, oldest], isMore: false });
    t.deepEqual(await read(endOfTime, 2), { days: [newest, second], isMore: true });
    t.deepEqual(await read(second.day, 2), { days: [oldest], isMore: false });
    t.deepEqual(await read(endOfTime, 31, 2), { days: [newest], isMore: true });
  });
}
