/** Rows that go as one JSON value come back as they were given, on both databases. */
import test from 'ava';
import { newId } from '../../src/base/id.ts';
import { insertRows } from '../../src/db/engine/insert-rows.ts';
import { kinds } from '../lab/database/databases.ts';
import { openQueue } from '../lab/database/queue-rows.ts';

const texts = ['', 'null', '1', `'"\\`, '{"a":[1]}', 'Grüße 😀', 'line\r\n\tline', 'x'.repeat(100_000)];
const numbers = [0, -1, Number.MAX_SAFE_INTEGER];

for (const kind of kinds) {
  test(`${kind}: texts, numbers, booleans and nulls, whatever is in them`, async (t) => {
    const { db } = await openQueue(t, kind);
    const rows = texts.map((name, index) => ({
      id: newId(),
      name,
      created_at: 1,
      quota_since: 2,
      told_low: index % 2 === 0,
      wallet: numbers[index % 3]!,
      quota_limit: index % 2 === 0 ? null : numbers[2]!,
      pool: null,
    }));
    await db.transaction((trx) => insertRows(trx, 'organizations', rows));
    const ids = rows.map(({ id }) => id);
    const kept = await db('organizations').whereIn('id', ids).orderBy('id').select(Object.keys(rows[0]!));
    t.deepEqual(
      kept.map((row) => ({ ...row, told_low: Boolean(row.told_low) })),
      rows,
    );
  });

  test(`${kind}: the order of a row's members does not matter, and one left out is null`, async (t) => {
    const { db } = await openQueue(t, kind);
    const rows = [
      { kind: 'test', name: 'a', value: 'x', expires_at: 1 },
      { expires_at: 2, value: 'y', name: 'b', kind: 'test' },
    ];
    await db.transaction((trx) => insertRows(trx, 'learned', rows));
    t.deepEqual(await db('learned').orderBy('name').select('kind', 'name', 'value', 'expires_at'), rows);
    const some = [
      { id: newId(), name: 'a', created_at: 1, quota_since: 2, pool: 'p' },
      { id: newId(), name: 'b', created_at: 1, quota_since: 2 },
    ];
    await db.transaction((trx) => insertRows(trx, 'organizations', some));
    t.is((await db('organizations').where({ id: some[1]!.id }).first()).pool, null);
  });
}
