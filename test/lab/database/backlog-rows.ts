/**
 * Creates a queue and a past of any length in the database: rows that the real program has left (one mail delivered, one
 * deferred) are multiplied by INSERT … SELECT, each copy with ids, times and a recipient of its own. So they have the
 * program's own columns, texts and sizes, whatever the schema is.
 *
 * Waiting mail is mixed with the newest past mail, as in life: both arrived over the last forty hours. Six tenths of it are
 * deferred and due within the next four hours; two tenths are deferred and overdue; two tenths were never tried and are
 * overdue since they were accepted.
 */

import { insertOrganization } from '#accounts/rows/organizations.ts';
import { type Db, isPostgres } from '#platform/database/engine/open.ts';
import { dropIndexes } from './backlog-indexes.ts';

export interface Amounts {
  waiting: number;
  past: number;
  /** Destinations and organizations of the waiting mail, in equal parts. */
  destinations: number;
  organizations: number;
}

/** The ids of the emails to multiply. */
export interface Templates {
  delivered: string;
  deferred: string;
}

const hour = 3_600_000;
const batch = 200_000;

export const deadDomain = (index: number) => `d${index}.dead.invalid`;

export async function fill(
  db: Db,
  templates: Templates,
  amounts: Amounts,
  onProgress: (mails: number) => void = () => {},
): Promise<void> {
  await prepare(db);
  await keepTemplates(db, templates);
  await keepOrganizations(db, amounts.organizations);
  const restore = await dropIndexes(db, tables);
  await makeMails(db, amounts, onProgress);
  await restore();
  await settle(db);
}

async function makeMails(db: Db, amounts: Amounts, onProgress: (mails: number) => void): Promise<void> {
  const { waiting, past } = amounts;
  const now = Date.now();
  const mixed = 2 * Math.min(waiting, past);
  const before = waiting + past - mixed;
  // Waiting mail is younger than its maximum age, however much of it there is.
  const ages =
    past > waiting
      ? { from: now - 30 * 24 * hour, to: now - 40 * hour }
      : { from: now - 40 * hour, to: now - 60_000 };
  const old = { first: 1, count: before, ...ages };
  const recent = { first: before + 1, count: mixed, from: now - 40 * hour, to: now - 60_000 };
  const dueness = waitingDueAt(now);
  await inBatches(old, onProgress, async (range) => {
    if (past > waiting) await copyPast(db, range, 'true');
    else await copyWaiting(db, range, 'true', amounts, dueness);
  });
  await inBatches(recent, onProgress, async (range) => {
    await copyPast(db, range, 'n % 2 = 0');
    await copyWaiting(db, range, 'n % 2 = 1', amounts, dueness);
  });
}

/** Overdue mail for a domain, due after all overdue mail that `fill` created. */
export async function addOverdue(db: Db, domain: string, count: number): Promise<void> {
  const now = Date.now();
  const range = { first: now, last: now + count - 1, createdAt: `(${now - 60_000})` };
  await copy(db, 'deferred', range, 'true', {
    deliveries: { recipient: `'n' || n || '@${domain}'`, domain: `'${domain}'`, due_at: `${now - 1}` },
  });
}

/** The numbers of some mails, and when each was accepted, in terms of n. */
interface Range {
  first: number;
  last: number;
  createdAt: string;
}

async function inBatches(
  { first, count, from, to }: { first: number; count: number; from: number; to: number },
  onProgress: (mails: number) => void,
  each: (range: Range) => Promise<void>,
): Promise<void> {
  const createdAt = `(${from} + (n - ${first}) * ${to - from} / ${Math.max(count, 1)})`;
  for (let start = first; start < first + count; start += batch) {
    await each({ first: start, last: Math.min(start + batch, first + count) - 1, createdAt });
    onProgress(Math.min(start + batch, first + count) - 1);
  }
}

function copyPast(db: Db, range: Range, which: string): Promise<void> {
  return copy(db, 'delivered', range, which, {
    deliveries: {
      recipient: "'n' || n || '@past' || (n % 5000) || '.invalid'",
      domain: "'past' || (n % 5000) || '.invalid'",
    },
    // Idempotency keys are kept for a day.
    idempotency: { only: `${range.createdAt} > ${Date.now() - 24 * hour}` },
  });
}

async function copyWaiting(
  db: Db,
  range: Range,
  which: string,
  { destinations, organizations }: Amounts,
  dueAt: string,
): Promise<void> {
  const domain = `'d' || (n / 2 % ${destinations}) || '.dead.invalid'`;
  const org = `(select id from backlog_orgs where number = n / 3 % ${organizations})`;
  const untried = '(n / 2 % 10 > 7)';
  await copy(db, 'deferred', range, which, {
    deliveries: {
      org_id: org,
      recipient: `'n' || n || '@' || ${domain}`,
      domain,
      status: `case when ${untried} then 'queued' else 'deferred' end`,
      attempts: `case when ${untried} then 0 else 1 end`,
      due_at: dueAt.replaceAll('created_at', range.createdAt),
    },
    emails: { org_id: org },
    events: { org_id: org, only: `not (${untried} and type = 'email.deferred')` },
    attempts: { only: `not ${untried}` },
    credit_entries: { org_id: org },
  });
}

function waitingDueAt(now: number): string {
  return `case when n / 2 % 10 < 6 then ${now} + 60000 + n * 7919 % ${4 * hour}
    when n / 2 % 10 < 8 then ${now} - 60000 - n * 7919 % ${2 * hour} else created_at end`;
}

/** Columns that differ in a copy, in addition to its ids and times; `only` selects the rows to copy. */
type Changes = Partial<Record<(typeof tables)[number], Record<string, string>>>;

/** In the order that the foreign keys require. */
const tables = [
  'emails',
  'messages',
  'deliveries',
  'attempts',
  'events',
  'credit_entries',
  'idempotency',
] as const;

async function copy(
  db: Db,
  kind: keyof Templates,
  range: Range,
  which: string,
  changes: Changes,
): Promise<void> {
  const at = (offset: number) => `${range.createdAt} + ${offset}`;
  const id = (number: number | string) => uuidOf(db, range.createdAt, String(number));
  const times = { created_at: at(0), updated_at: at(300) };
  const fallback: Record<(typeof tables)[number], Record<string, string>> = {
    emails: { id: id(1), message_id: `'n' || n || '@postern.invalid'`, ...times },
    messages: { id: id(2), email_id: id(1), raw: shortMessage(db), size: '256' },
    deliveries: {
      id: id(3),
      email_id: id(1),
      message_id: id(2),
      ...times,
      delivered_at: `case when delivered_at is null then null else ${at(300)} end`,
      expires_at: at(48 * hour),
    },
    attempts: { id: id(4), delivery_id: id(3), started_at: at(100), ended_at: at(300) },
    events: { id: id('5 + number'), email_id: id(1), at: at(300) },
    credit_entries: { id: id(9), email_id: id(1), at: at(0) },
    idempotency: { key: randomKey(db), email_id: id(1), created_at: at(0) },
  };
  const numbers = isPostgres(db)
    ? `generate_series(${range.first}::bigint, ${range.last}::bigint) as numbers(n)`
    : `(with recursive numbers(n) as (select ${range.first} union all select n + 1 from numbers where n < ${range.last}) select n from numbers)`;
  await db.transaction(async (trx) => {
    if (isPostgres(trx))
      await trx.raw('set local session_replication_role = replica; set local synchronous_commit = off');
    for (const table of tables) {
      const { only = 'true', ...own } = changes[table] ?? {};
      const set: Record<string, string> = { ...fallback[table], ...own };
      const template = `backlog_${kind}_${table}`;
      // The database assigns an event's position.
      const names = Object.keys(await trx(table).columnInfo()).filter(
        (name) => !(table === 'events' && name === 'position'),
      );
      const values = names.map((name) => set[name] ?? `t.${name}`);
      await trx.raw(
        `insert into ${table} (${names.map((name) => `"${name}"`).join(', ')})
         select ${values.join(', ')} from ${template} as t cross join ${numbers} where ${which} and ${only}`.replaceAll(
          '?',
          '\\?',
        ),
      );
    }
  });
}

/** UUIDs of version 7, which begin with the time, so that later rows come later in every index, as the program's own do. */
function uuidOf(db: Db, at: string, kind: string): string {
  return isPostgres(db)
    ? `(lpad(to_hex(${at} >> 16), 8, '0') || '-' || lpad(to_hex(${at} & 65535), 4, '0') || '-7' || lpad(to_hex(${kind}), 3, '0') || '-8000-' || lpad(to_hex(n), 12, '0'))::uuid`
    : `printf('%08x-%04x-7%03x-8000-%012x', ${at} >> 16, ${at} & 65535, ${kind}, n)`;
}

function shortMessage(db: Db): string {
  const text = `'Subject: ${'x'.repeat(256 - 9)}'`;
  return isPostgres(db) ? `convert_to(${text}, 'UTF8')` : `cast(${text} as blob)`;
}

function randomKey(db: Db): string {
  return isPostgres(db) ? 'md5(random()::text) || n' : 'lower(hex(randomblob(16))) || n';
}

async function keepTemplates(db: Db, templates: Templates): Promise<void> {
  for (const [kind, emailId] of Object.entries(templates)) {
    for (const table of tables) {
      const key = table === 'emails' ? 'id' : 'email_id';
      const rows =
        table === 'attempts'
          ? `select * from attempts where delivery_id in (select id from deliveries where email_id = '${emailId}') and number = 1`
          : `select *, row_number() over () as number from ${table} where ${key} = '${emailId}'`;
      await db.raw(`create table backlog_${kind}_${table} as ${rows}`);
    }
  }
}

async function keepOrganizations(db: Db, count: number): Promise<void> {
  await db.schema.createTable('backlog_orgs', (table) => {
    table.integer('number').primary();
    table.uuid('id');
  });
  for (let number = 0; number < count; number++) {
    const id = await insertOrganization(db, `Backlog ${number}`, Date.now());
    await db('backlog_orgs').insert({ number, id });
  }
}

/** Turns durability off, because nothing here has to survive a crash. */
async function prepare(db: Db): Promise<void> {
  if (isPostgres(db)) {
    // Autovacuum could truncate a table while it is being filled.
    for (const table of await leaves(db))
      await db.raw(`alter table ${table} set (autovacuum_enabled = false)`);
    return;
  }
  for (const pragma of [
    'synchronous = off',
    'foreign_keys = off',
    'cache_size = -500000',
    'wal_autocheckpoint = 20000',
  ])
    await db.raw(`pragma ${pragma}`);
}

/** Maintenance that a database has had after running for a while. */
async function settle(db: Db): Promise<void> {
  if (isPostgres(db)) {
    for (const table of await leaves(db)) await db.raw(`alter table ${table} reset (autovacuum_enabled)`);
    await db.raw('vacuum analyze');
  } else await db.raw('pragma wal_checkpoint(truncate)');
}

/** The tables that contain rows themselves: partitions, if a table has any. */
async function leaves(db: Db): Promise<string[]> {
  const trees = tables.map((table) => `select relid, isleaf from pg_partition_tree('${table}')`);
  const { rows } = await db.raw(
    `select relid::regclass::text as name from (${trees.join(' union all ')}) as tree where isleaf`,
  );
  // pg_partition_tree returns nothing for a table that is not partitioned.
  const names: string[] = rows.map(({ name }: { name: string }) => name);
  return [...names, ...tables.filter((table) => !names.some((name) => name.startsWith(`${table}_`)))];
}
