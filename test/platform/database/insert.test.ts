/** Rows that go as one JSON value come back as they were given, on both databases. */
import { randomBytes } from 'node:crypto';
import test from 'ava';
import { kinds } from '#lab/database/databases.ts';
import { openQueue } from '#lab/database/queue-rows.ts';
import { newId } from '#platform/base/id.ts';
import { insertRawRows, insertRows } from '#platform/database/engine/insert-rows.ts';
import { writeTogether } from '#platform/database/engine/write-together.ts';

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

  test(`${kind}: bytes of any length, alone and with other statements, the same statement again`, async (t) => {
    const { db } = await openQueue(t, kind);
    const mail = (raw: Buffer) => ({
      id: newId(),
      kind: 'other',
      sender: '',
      recipient: '',
      peer: '',
      at: 1,
      reading: '{}',
      size: raw.length,
      raw,
    });
    const bytes = [1, 2, 255, 70_000].map((length) => randomBytes(length));
    const groups = [bytes, [Buffer.from('\0\\x00')], bytes.slice(1, 3)].map((group) => group.map(mail));
    for (const rows of groups)
      await db.transaction((trx) =>
        writeTogether(trx, [
          (all) => insertRawRows(all, 'inbound_mails', rows.slice(0, 1)),
          (all) => insertRawRows(all, 'inbound_mails', rows.slice(1)),
        ]),
      );
    const kept = await db('inbound_mails').orderBy('id').select('id', 'size', 'raw');
    t.deepEqual(
      kept,
      groups.flat().map(({ id, size, raw }) => ({ id, size, raw })),
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
