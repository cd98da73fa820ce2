/**
 * The schema as the migrations make it, dumped beside them for review: a migration whose effect on either database
 * is not what its author thinks shows up in the diff. `UPDATE_SCHEMA=1 npm test -- test/db/schema.test.ts` writes it.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { v7 as uuid } from 'uuid';
import { insertOrganization } from '../../src/db/accounts/organizations.ts';
import { type Db, openDatabase } from '../../src/db/engine/open.ts';
import { migrate } from '../../src/db/schema/migrate.ts';
import { first } from '../../src/db/schema/migrations/001-first.ts';
import { engine } from '../../src/db/schema/migrations/002-engine.ts';
import { flat } from '../../src/db/schema/migrations/004-flat.ts';
import { packed } from '../../src/db/schema/migrations/024-packed.ts';
import { createDatabase, type DatabaseKind, kinds } from '../lab/database/databases.ts';
import { temporaryDirectory } from '../lab/evidence.ts';

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
  test(`${kind}: the schema is as dumped`, async (t) => {
    const db = await (await emptyDatabase(t, kind))();
    await migrate(db);
    const dump = await dumps[kind](db);
    const file = join(import.meta.dirname, `../../src/db/schema/schema.${kind}.sql`);
    if (process.env.UPDATE_SCHEMA) await writeFile(file, dump);
    t.is(dump, await readFile(file, 'utf8'));
  });

  test(`${kind}: nodes that start at once migrate once`, async (t) => {
    const open = await emptyDatabase(t, kind);
    const nodes = await Promise.all([open(), open(), open()]);
    await Promise.all(nodes.map((node) => migrate(node)));
    t.deepEqual(await nodes[0]!('knex_migrations').pluck('name'), [
      '001-first',
      '002-engine',
      '003-returned',
      '004-flat',
      '005-events',
      '006-webhooks',
      '007-rotation',
      '008-users',
      '009-statistics',
      '010-partitions',
      '011-nodes',
      '012-source-pools',
      '013-message-bases',
      '014-node-versions',
      '015-pause',
      '016-names',
      '017-soft-bounces',
      '018-domain-watch',
      '019-recipient-kinds',
      '020-scheduled',
      '021-strict-keys',
      '022-tls-results',
      '023-webhook-formats',
      '024-packed',
      '025-dialect',
      '026-test-keys',
      '027-destination-rules',
      '028-suppression-reply',
    ]);
  });
}

for (const kind of kinds) {
  test(`${kind}: mail that an older version has parked is due since then`, async (t) => {
    const db = await (await emptyDatabase(t, kind))();
    for (const migration of [first, engine]) await migration.up(db);
    const orgId = await insertOrganization(db, 'Acme', 0);
    const times = { created_at: 1, updated_at: 1 };
    const email = {
      message_id: 'm',
      sender: 'a',
      subject: 's',
      recipients: '[]',
      tags: '{}',
      tracking: '{}',
    };
    const emailId = uuid();
    await db('emails').insert({ id: emailId, org_id: orgId, ...email, credits: 1, ...times });
    const put = (recipient: string, row: object) =>
      db('deliveries').insert({
        id: uuid(),
        email_id: emailId,
        org_id: orgId,
        position: 0,
        recipient,
        domain: 'there.invalid',
        status: 'deferred',
        expires_at: 99,
        ...times,
        ...row,
      });
    await put('parked', { due_at: 99, parked_at: 5 });
    await put('waiting', { due_at: 7 });
    await put('held', { status: 'held' });
    await flat.up(db);
    const rows = await db('deliveries').orderBy('recipient').select('recipient', 'due_at', 'parked_at');
    t.deepEqual(
      rows.map((row) => Object.values(row)),
      [
        ['held', null, null],
        ['parked', 5, null],
        ['waiting', 7, null],
      ],
    );
  });
}

for (const kind of kinds) {
  test(`${kind}: the ledger of an older version stays as it was`, async (t) => {
    const db = await (await emptyDatabase(t, kind))();
    await first.up(db);
    const orgs = ['One', 'Two'].map((name) => ({ id: uuid(), name, created_at: 1, quota_since: 1 }));
    await db('organizations').insert(orgs);
    const entries = [1, 2, 3, 4].map((at) => ({
      id: uuid(),
      org_id: orgs[at % 2]!.id,
      at,
      change: -at,
      reason: 'send',
      email_id: at > 2 ? uuid() : null,
      balance: at > 3 ? 5 : null,
    }));
    await db('credit_entries').insert(entries.toReversed());
    await packed.up(db);
    t.deepEqual(await db('credit_entries').orderBy('id').select(Object.keys(entries[0]!)), entries);
    await db('organizations').where({ id: orgs[0]!.id }).delete();
    t.is((await db('credit_entries')).length, 2, 'an organization takes its entries with it');
  });
}

const dumps = { sqlite: dumpSqlite, postgres: dumpPostgres };

const isOurs = (name: string) => !/^(knex_|sqlite_)/.test(name);

async function dumpSqlite(db: Db): Promise<string> {
  const rows: { tbl_name: string; sql: string }[] = await db('sqlite_master')
    .whereNotNull('sql')
    .orderBy(['tbl_name', { column: 'type', order: 'desc' }, 'name'])
    .select('tbl_name', 'sql');
  return rows
    .filter((row) => isOurs(row.tbl_name))
    .map(({ sql }) => `${readable(sql)};\n`)
    .join('\n');
}

async function dumpPostgres(db: Db): Promise<string> {
  const columns = await db('information_schema.columns')
    .where({ table_schema: 'public' })
    .orderBy(['table_name', 'ordinal_position'])
    .select('table_name', 'column_name', 'data_type', 'is_nullable', 'column_default');
  const { rows: constraints } = await db.raw(
    `select conrelid::regclass::text as "table", pg_get_constraintdef(oid) as def
       from pg_constraint where connamespace = 'public'::regnamespace and contype <> 'n' order by 1, contype, 2`,
  );
  const { rows: indexes } = await db.raw(
    `select tablename as "table", indexdef as def from pg_indexes where schemaname = 'public' order by 1, indexname`,
  );
  const { rows: triggers } = await db.raw(
    `select tgrelid::regclass::text as "table", pg_get_triggerdef(oid) as def
       from pg_trigger where not tgisinternal order by 1, tgname`,
  );
  const { rows: parted } = await db.raw(
    `select relname as "table", ' PARTITION BY ' || pg_get_partkeydef(oid) as by, '' as of
       from pg_class where relkind = 'p'
     union all
     select relname, '', ' PARTITION OF ' || inhparent::regclass || ' ' || pg_get_expr(relpartbound, pg_class.oid)
       from pg_class join pg_inherits on inhrelid = pg_class.oid where relispartition and relkind = 'r'`,
  );
  const { rows: functions } = await db.raw(
    `select pg_get_functiondef(oid) as def from pg_proc where pronamespace = 'public'::regnamespace order by proname`,
  );
  const tables = [...new Set(columns.map((column) => column.table_name))].filter(isOurs);
  const described = tables.map((table) => {
    const lines = columns
      .filter((column) => column.table_name === table)
      .map(({ column_name, data_type, is_nullable, column_default }) =>
        [
          column_name,
          data_type,
          is_nullable === 'NO' && 'NOT NULL',
          column_default && `DEFAULT ${column_default}`,
        ]
          .filter(Boolean)
          .join(' '),
      );
    const rules = constraints.filter((row: { table: string }) => row.table === table);
    const body = [...lines, ...rules.map((row: { def: string }) => row.def)]
      .map((line) => `  ${line}`)
      .join(',\n');
    const own = [...indexes, ...triggers].filter((row: { table: string }) => row.table === table);
    const part = parted.find((row: { table: string }) => row.table === table) ?? { by: '', of: '' };
    return [
      `CREATE TABLE ${table}${part.of} (\n${body}\n)${part.by};\n`,
      ...own.map((row: { def: string }) => `${row.def};\n`),
    ].join('');
  });
  return [...described, ...functions.map((row: { def: string }) => `${row.def.trim()};\n`)].join('\n');
}

/** One column a line. */
function readable(sql: string): string {
  return sql
    .replaceAll(/[`"]/g, '')
    .replace(
      /^(CREATE TABLE \w+) \((.*)\)( without rowid)?$/s,
      (_, head, body, kind = '') => `${head} (\n  ${splitColumns(body).join(',\n  ')}\n)${kind}`,
    );
}

function splitColumns(body: string): string[] {
  return body.split(/, (?![^(]*\))/);
}
