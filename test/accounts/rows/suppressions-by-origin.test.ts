/** A part of the suppression list is read by the database: of a long list, only what is wanted comes here. */
import test from 'ava';
import { addSuppressions, originOf, pageOfSuppressions, suppressionOf } from '#accounts/rows/suppressions.ts';
import { kinds } from '#lab/database/databases.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { column } from '#lab/table.ts';

const reasons = column('db/suppression-reasons');

for (const database of kinds) {
  test(`SQL and code agree on what put an address on the list: ${database}`, async (t) => {
    const { db, orgId } = await startWorld(t, { database });
    const list = reasons.map((reason, n) => suppressionOf(orgId, `n${n}@x.invalid`, reason));
    await addSuppressions(db, list, 1000);
    await addSuppressions(db, [suppressionOf(orgId, 'later@x.invalid', 'complaint')], 2000);
    const all = await pageOfSuppressions(db, { orgId, limit: 100 });
    t.is(all.length, reasons.length + 1);
    for (const origin of ['bounce', 'complaint', 'manual'] as const)
      t.deepEqual(
        await pageOfSuppressions(db, { orgId, origin, limit: 100 }),
        all.filter((one) => originOf(one) === origin),
      );
    const late = await pageOfSuppressions(db, {
      orgId,
      createdFrom: 1500,
      createdBefore: 8.64e15,
      limit: 100,
    });
    t.deepEqual(
      late.map(({ address }) => address),
      ['later@x.invalid'],
    );
    t.is((await pageOfSuppressions(db, { orgId, createdBefore: 2000, limit: 100 })).length, reasons.length);
  });
}
