/**
 * `node scripts/move.ts`: moves a SQLite database with past and waiting mail to PostgreSQL. Measures the time, kills the move
 * with SIGKILL on the way, and checks that it continues and that all waiting mail arrives once.
 *
 *   --mails 100000         number of mails
 *   --waiting 5000         of these, in the queue: queued, deferred, held, sending
 *   --kills 2              how often the move is killed
 *   --patience 300         seconds until the queue must be empty afterwards
 *   --json                 print all results as JSON
 *
 * The same database is moved twice, into two databases of one PostgreSQL: once from a copy, undisturbed and timed, and once
 * with kills. In the end both must have the same rows, by the digests of `postern move` and by this script's own counts: mail
 * by state, credits by organization. Then Postern starts on the second one, with SQLite's data directory. Held mail is
 * released, deferred mail made due, and an MX host (test/lab/mx/sink.ts) must receive each waiting mail once and nothing else.
 *
 * Exits 0 if all of that is so, 1 if not. Leaves nothing behind, not even after Ctrl-C.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import Table from 'cli-table3';
import { moveTable } from '../src/db/admin/moved-marker.ts';
import { type Db, openDatabase } from '../src/db/engine/open.ts';
import { postern } from '../test/lab/cli.ts';
import { startPostgres } from '../test/lab/database/postgres-server.ts';
import { startDns } from '../test/lab/dns/dns.ts';
import { conclude } from '../test/lab/load/conclude.ts';
import { progress } from '../test/lab/load/figures.ts';
import { perform, readOptions, type Stage } from '../test/lab/load/stage.ts';
import { startSink } from '../test/lab/mx/sink.ts';
import { command, makeSource, zoneOf } from '../test/lab/scenes/move-scene.ts';
import { startProcess } from '../test/lab/scenes/process.ts';
import { until } from '../test/lab/until.ts';

const given = readOptions('node scripts/move.ts [--mails N] [--waiting N] … (see its header)', {
  mails: { type: 'string', default: '100000' },
  waiting: { type: 'string', default: '5000' },
  kills: { type: 'string', default: '2' },
  patience: { type: 'string', default: '300' },
  json: { type: 'boolean', default: false },
});
const mails = Number(given.mails);
const waiting = Number(given.waiting);
const host = '127.0.0.2';
/** Where the templates of waiting mail go at first: nothing listens there. */
const nowhere = '127.0.3.1';

interface Told {
  rows: number;
  resumed: number;
  seconds: number;
  waiting: Record<string, number>;
  tables: { table: string; rows: number; digest: string }[];
}

interface Result {
  undisturbed: Told;
  killed: Told;
  killedAt: number[];
  queued: number;
  arrived: number;
  copiesTooMany: number;
  drainSeconds: number;
  faults: string[];
}

async function run(stage: Stage): Promise<Result> {
  const sink = await stage.start(startSink([{ host }]), (it) => it.stop());
  const zone = {
    ...zoneOf(nowhere),
    'there.invalid': { MX: ['10 here.invalid'] },
    'here.invalid': { A: [host] },
  };
  const dns = await stage.start(startDns(zone), (it) => it.close());
  const server = await stage.start(startPostgres(stage.directory), (it) => it.stop());
  const dataDir = join(stage.directory, 'postern');
  await mkdir(dataDir);
  const settings = await makeSource(stage, { dataDir, dns, mtaPort: sink.port, mails, waiting });
  const already = (await sink.books()).taken.length;
  progress(`${mails} mails are in SQLite, ${waiting} of them in the queue`);

  const copy = join(stage.directory, 'copy');
  await cp(dataDir, copy, { recursive: true });
  const [first, second] = [await newDatabase(server.url, 'first'), await newDatabase(server.url, 'second')];
  const undisturbed: Told = JSON.parse(
    await command(['move', '--to', first, '--json'], { ...settings, POSTERN_DATA_DIR: copy }),
  );
  progress(`moved undisturbed in ${undisturbed.seconds} s`);
  const target = await stage.start(openDatabase({ dataDir, databaseUrl: second }), (it) => it.destroy());
  const killedAt: number[] = [];
  for (let kill = 1; kill <= Number(given.kills); kill++) {
    const share = kill / (Number(given.kills) + 1);
    killedAt.push(await killedOnTheWay(settings, second, target, Math.floor(undisturbed.rows * share)));
    progress(`killed with ${killedAt.at(-1)} of ${undisturbed.rows} rows there`);
  }
  const killed: Told = JSON.parse(await command(['move', '--to', second, '--json'], settings));
  progress(`moved, in the end in ${killed.seconds} s, with ${killed.resumed} rows from before`);

  const source = await openDatabase({ dataDir, databaseUrl: null });
  const [here, there] = [await booksOf(source), await booksOf(target)];
  await source.destroy();
  const wanted: string[] = await target('deliveries')
    .whereIn('status', ['queued', 'deferred', 'held', 'sending'])
    .pluck('recipient');
  dns.set(zoneOf(host));
  const begun = performance.now();
  const onPostgres = { ...settings, POSTERN_DATABASE_URL: second, POSTERN_MTA_RETRY: '1s' };
  const node = await stage.start(startProcess(onPostgres), (it) => it.end('SIGKILL'));
  await command(['queue', 'release', '--status', 'held', '--reason', 'moved'], onPostgres);
  await until(async () => dueNow(target), { timeout: 60_000, what: 'the queue to be due' });
  await drained(target);
  const drainSeconds = (performance.now() - begun) / 1000;
  await node.end('SIGTERM');
  const arrived = (await sink.books()).taken.slice(already).map(({ to }) => to);
  return {
    undisturbed,
    killed,
    killedAt,
    queued: wanted.length,
    arrived: new Set(arrived).size,
    drainSeconds,
    copiesTooMany: arrived.length - new Set(arrived).size,
    faults: [
      ...(isDeepStrictEqual(undisturbed.tables, killed.tables)
        ? []
        : ['the two moves have not the same rows']),
      ...(isDeepStrictEqual(here, there)
        ? []
        : ['mail by state, or credits, are not the same on both sides']),
      ...(wanted.length === waiting ? [] : [`${wanted.length} mails waited, not ${waiting}`]),
      ...(isDeepStrictEqual(arrived.toSorted(), wanted.toSorted())
        ? []
        : ['what waited is not what arrived, each once']),
      ...(killed.resumed > 0 || killedAt.length === 0 ? [] : ['nothing was there from before it was killed']),
    ],
  };
}

async function newDatabase(server: string, name: string): Promise<string> {
  const db = await openDatabase({ dataDir: '', databaseUrl: server });
  await db.raw(`create database ${name}`);
  await db.destroy();
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}

/** Kills the move when this many rows exist; resolves with their number at that moment. */
async function killedOnTheWay(
  settings: Record<string, string>,
  to: string,
  target: Db,
  rows: number,
): Promise<number> {
  const child = spawn(postern, ['move', '--to', to], {
    env: { PATH: process.env.PATH, ...settings },
    stdio: 'ignore',
  });
  const gone = once(child, 'exit');
  await until(async () => (await rowsThere(target)) >= rows, { timeout: 300_000, what: `${rows} rows` });
  child.kill('SIGKILL');
  await gone;
  return rowsThere(target);
}

async function rowsThere(target: Db): Promise<number> {
  const { reached } = await target(moveTable).first('reached');
  return Object.values<{ rows: number }>(JSON.parse(reached)).reduce((sum, { rows }) => sum + rows, 0);
}

/** Counted independently of the command's own figures. */
async function booksOf(db: Db) {
  const numbers = (rows: Record<string, unknown>[]) =>
    rows.map((row) => Object.values(row).map(String).join(' ')).toSorted();
  return {
    deliveries: numbers(
      await db('deliveries').groupBy('status', 'attempts').select('status', 'attempts').count('* as n'),
    ),
    credits: numbers(
      await db('organizations').select('id', 'quota_used', 'wallet', 'ledger_total', 'quota_limit'),
    ),
    ledger: numbers(
      await db('credit_entries').groupBy('org_id').select('org_id').sum('change as n').count('* as m'),
    ),
    leases: numbers(await db('deliveries').whereNotNull('lease_owner').select('id', 'lease_owner')),
  };
}

/** Makes deferred mail due now, so that the script need not wait for hours. */
async function dueNow(target: Db): Promise<boolean> {
  const now = Date.now();
  await target('deliveries').where({ status: 'deferred' }).where('due_at', '>', now).update({ due_at: now });
  return !(await target('deliveries').where({ status: 'held' }).first());
}

async function drained(db: Db): Promise<void> {
  const left = async () => Number((await db('deliveries').whereNotNull('due_at').count('* as n').first())?.n);
  await until(async () => (await left()) === 0, {
    timeout: Number(given.patience) * 1000,
    what: 'the queue to run empty',
  });
}

function print({ undisturbed, killed, ...one }: Result): void {
  const states = Object.entries(killed.waiting).map(([status, count]) => `${count} ${status}`);
  const table = new Table({ style: { head: [], border: [] } });
  table.push(
    ['mails, rows', `${given.mails}, ${undisturbed.rows}`],
    ['in the queue', `${one.queued}: ${states.join(', ')}`],
    [
      'moved undisturbed',
      `${undisturbed.seconds} s, ${Math.round(undisturbed.rows / undisturbed.seconds)} rows a second, checked`,
    ],
    ['killed with SIGKILL, rows there', one.killedAt.join(', ') || 'never'],
    ['then moved to the end', `${killed.seconds} s, ${killed.resumed} rows were there`],
    ['arrived from PostgreSQL', `${one.arrived}, ${one.copiesTooMany} copies too many`],
    ['the queue ran empty in', `${one.drainSeconds.toFixed(1)} s`],
  );
  console.log(table.toString());
}

let result: Result | undefined;
const faults = await perform('move', async (stage) => {
  result = await run(stage);
  return result.faults;
});
conclude({
  faults,
  json: given.json ? { ...result } : false,
  print: () => result && print(result),
  holds: 'Nothing is lost.',
});
