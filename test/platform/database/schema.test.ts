/**
 * A new database has the schema of src/db/schema/schema.*.sql, and a database of 0.9.0 gets it by the steps since. Whoever adds a
 * step edits these files too.
 */
import { hash } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import { insertOrganization } from '#accounts/rows/organizations.ts';
import { createDatabase, type DatabaseKind, kinds } from '#lab/database/databases.ts';
import { dumpSchema } from '#lab/database/schema-dump.ts';
import { toVersion09 } from '#lab/database/version-09.ts';
import { temporaryDirectory } from '#lab/evidence.ts';
import { openDatabase } from '#platform/database/engine/open.ts';
import { migrate, migrationsOf, readSchema } from '#platform/database/schema/migrate.ts';

/** SHA-256 of the schemas that 0.9.0 makes. */
const schemas09 = {
  sqlite: '1eaa48d674ecf6f33cb62c723dc2153fae5a681c76e837439f354a22790873a9',
  postgres: '3e5f7e8ec5387baed3a0fe31b6e601c35ad1639ab10f39350de7f59dd2be74b1',
};

async function emptyDatabase(t: ExecutionContext, kind: DatabaseKind) {
  const dataDir = await temporaryDirectory(t);
  const { url, drop } = await createDatabase(kind);
  t.teardown(drop);
  const open = async () => {
    const db = await openDatabase({ dataDir, databaseUrl: url });
    t.teardown(() => db.destroy());
    return db;
  };
  return open;
}

for (const kind of kinds) {
  test(`${kind}: a new database has the schema of the file`, async (t) => {
    const db = await (await emptyDatabase(t, kind))();
    await migrate(db);
    t.is(await dumpSchema(db), await readSchema(db));
  });

  test(`${kind}: a database of 0.9.0 gets the schema of a new one, and keeps its rows`, async (t) => {
    const db = await (await emptyDatabase(t, kind))();
    await migrate(db);
    await toVersion09(db);
    t.is(hash('sha256', await dumpSchema(db)), schemas09[kind], 'this is not the schema of 0.9.0');
    const orgId = await insertOrganization(db, 'Acme', 0);
    await db('suppressions').insert({
      id: orgId,
      org_id: orgId,
      address: 'a@b.invalid',
      address_key: 'a@b.invalid',
      reason: 'manual',
      created_at: 1,
    });
    await migrate(db);
    t.is(await dumpSchema(db), await readSchema(db));
    t.like(await db('suppressions').first(), { id: orgId, reply: null });
    t.like(await db('organizations').first('id', 'requires_second_factor'), {
      id: orgId,
      requires_second_factor: kind === 'sqlite' ? 0 : false,
    });
  });

  test(`${kind}: nodes that start at once migrate once`, async (t) => {
    const open = await emptyDatabase(t, kind);
    const nodes = await Promise.all([open(), open(), open()]);
    await Promise.all(nodes.map((node) => migrate(node)));
    const { done, pending, unknown } = await migrationsOf(nodes[0]!);
    t.deepEqual(done, [...new Set(done)]);
    t.deepEqual([done[0], pending, unknown], ['027-destination-rules', [], []]);
    t.deepEqual(await nodes[0]!('event_readers').orderBy('name'), [
      { name: 'statistics', position: 0 },
      { name: 'webhooks', position: 0 },
    ]);
  });
}
