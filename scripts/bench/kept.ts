/**
 * The disk that delivered mails take (kept-mail.ts), by table and index, at three ages: until the bytes are deleted, until
 * the attempts and events are deleted, and for good. A real Postern delivers them over TLS to a host that replies like Postfix;
 * then the maintenance jobs run with a clock that is set ahead.
 *
 * SQLite: pages of the file without the free ones, which the next mails use. PostgreSQL: all relations with their free space,
 * vacuumed ten times during the work, as autovacuum does in a database that is large.
 */
import { join } from 'node:path';
import Table from 'cli-table3';
import { progress } from '#lab/load/figures.ts';
import type { Stage } from '#lab/load/stage.ts';
import { startMx } from '#lab/mx/mx.ts';
import { type Measured, startMeasured } from '#lab/scenes/measured-postern.ts';
import { forgetAnswers } from '#mail/accept/rows/idempotency.ts';
import { partitionJobs } from '#mail/record/rows/partitioned-tables.ts';
import { removeMessages } from '#mail/record/rows/retention.ts';
import { newId } from '#platform/base/id.ts';
import { type Db, isPostgres, openDatabase } from '#platform/database/engine/open.ts';
import { domainOf } from './bench-cases.ts';
import { startBenchDatabase } from './bench-database.ts';
import { mailOf } from './kept-mail.ts';

const ages = ['a day', '30 days', 'for good'] as const;

export interface Kept {
  database: string;
  /** By table or index: bytes for each mail at each age. */
  bytes: Record<string, number[]>;
}

const day = 86_400_000;
const lots = 10;
const parallel = 16;
const domains = 50;

interface KeptWork {
  mails: number;
  /** Of the text and HTML of each. */
  bytes: number;
  settings: Record<string, string>;
  onPostgres: boolean;
}

export async function measureKept(
  stage: Stage,
  { mails, bytes, settings, onPostgres }: KeptWork,
): Promise<Kept> {
  const { name: database, url: databaseUrl } = await startBenchDatabase(stage, onPostgres);
  const hostname = `mx.${domainOf(0)}`;
  const script = { dot: () => `250 2.0.0 Ok: queued as ${newId().slice(-14).replace('-', '')}` };
  const mx = await stage.start(startMx({ host: '127.0.1.1', hostname, script }), (it) => it.close());
  const hosts = Array.from({ length: domains }, () => mx.host);
  const sink = {
    kind: 'mx',
    hosts,
    port: mx.port,
    count: async () => mx.messages.length,
    reached: async () => 0,
    stop: async () => {},
  };
  const postern = await startMeasured(stage, sink, { settings, databaseUrl });
  const { db } = postern;
  const patient = { dataDir: join(stage.directory, 'postern'), databaseUrl };
  const jobsAt = (now: number) =>
    partitionJobs({
      db,
      openWithoutTimeout: () => openDatabase(patient),
      now: () => now,
      keepEvents: 30 * day,
      keepEmails: null,
    }).map(({ run }) => run);
  await runAll(jobsAt(Date.now()));
  const before = await sizesOf(db);
  for (let lot = 1; lot <= lots; lot++) {
    await deliver(postern, { count: mails / lots, bytes, lot });
    progress(`${database}: ${(mails / lots) * lot} mails delivered`);
    await vacuum(db);
  }
  await postern.end();
  const delivered = Date.now();
  const sizes: Record<string, number>[] = [];
  const measure = async (...jobs: (() => Promise<number>)[]) => {
    await runAll(jobs);
    await vacuum(db);
    sizes.push(await sizesOf(db));
  };
  await measure(() => forgetAnswers(db, delivered + day / 2, day));
  await measure(removeMessages(db, () => delivered + 2 * day, day));
  await measure(...jobsAt(delivered + 60 * day));
  const names = Object.keys(sizes[0]!);
  const sizesFor = (name: string) => sizes.map((each) => ((each[name] ?? 0) - (before[name] ?? 0)) / mails);
  return { database, bytes: Object.fromEntries(names.map((name) => [name, sizesFor(name)])) };
}

async function deliver(
  { url, key, deliveredAt }: Measured,
  { count, bytes, lot }: { count: number; bytes: number; lot: number },
): Promise<void> {
  const label = `lot${lot}`;
  let next = 0;
  const caller = async () => {
    for (let number = next++; number < count; number = next++) {
      const body = JSON.stringify({
        ...mailOf(lot * 1_000_000 + number, bytes),
        from: 'Shop <shop@sender.invalid>',
        to: `${label}-${number}.customer@${domainOf(number % domains)}`,
      });
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
      const response = await fetch(`${url}/api/public/email/send`, { method: 'POST', headers, body });
      if (!response.ok) throw new Error(`HTTP ${response.status}: ${await response.text()}`);
      await response.arrayBuffer();
    }
  };
  await Promise.all(Array.from({ length: parallel }, caller));
  await deliveredAt(label, count);
}

/** Each job until it finds nothing more. */
async function runAll(jobs: (() => Promise<number>)[]): Promise<void> {
  for (const job of jobs) while ((await job()) > 0);
}

/** Also gives back the indexes of tables that have become empty, whose pages the next rows would use. */
async function vacuum(db: Db): Promise<void> {
  if (!isPostgres(db)) return;
  await db.raw('vacuum');
  const { rows } = await db.raw(
    `select relname as name from pg_class where relkind = 'r' and relpages = 0 and relnamespace = 'public'::regnamespace`,
  );
  for (const { name } of rows) if (ofMails.test(name)) await db.raw(`reindex table ${name}`);
}

/** The tables that get a row from every mail, and their indexes. */
const ofMails =
  /^(sqlite_autoindex_)?(emails|messages|deliveries|attempts|events|credit_entries|idempotency)(_|$)/;

/** Bytes by table and index; partitions count as their table. */
async function sizesOf(db: Db): Promise<Record<string, number>> {
  const sql = isPostgres(db)
    ? `select relation.relname as name, pg_table_size(relation.oid) as size from pg_class as relation
       where relkind in ('r', 'i') and relnamespace = 'public'::regnamespace`
    : 'select name, sum(pgsize) as size from dbstat group by name';
  const result = await db.raw(sql);
  const rows: { name: string; size: number | string }[] = isPostgres(db) ? result.rows : result;
  const sizes: Record<string, number> = {};
  for (const { name, size } of rows) {
    if (!ofMails.test(name)) continue;
    const own = name.replace(/^(emails|attempts|events)_(first|\d+)/, '$1').replace(/_idx$/, '_index');
    sizes[own] = (sizes[own] ?? 0) + Number(size);
  }
  return sizes;
}

export function keptTable({ database, bytes }: Kept): string {
  const rows = Object.entries(bytes).filter(([, sizes]) => sizes.some((size) => size >= 1));
  rows.sort(([, one], [, other]) => other[0]! - one[0]!);
  const head = [`${database}, bytes for each mail`, ...ages];
  const table = new Table({ head, colAligns: ['left', 'right', 'right', 'right'], style: { compact: true } });
  for (const [name, sizes] of rows) table.push([name, ...sizes.map((size) => size.toFixed(0))]);
  const sums = ages.map((_, at) => rows.reduce((sum, [, sizes]) => sum + sizes[at]!, 0));
  table.push(['all', ...sums.map((sum) => sum.toFixed(0))]);
  return table.toString();
}
