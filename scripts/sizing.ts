/**
 * `node scripts/sizing.ts`: what PostgreSQL makes of many nodes. Our own statements, from as many connections as there
 * would be nodes, against a real PostgreSQL; no SMTP, and the callers are one process. Linux only, for it reads /proc.
 *
 *   --nodes 1,10,100       how many, one after the other
 *   --mails 6000           claimed and recorded, in each
 *   --seconds 8            how long polls and bells are watched, in each
 *   --json                 everything as JSON
 *
 * claims: each node leases what is due in some of the lanes (`SKIP LOCKED`, where others do the same) and records it as
 * delivered, until nothing waits. polls: each node looks once a second, as it does at rest, for what is due, too old,
 * suspended, to be posted. bells: each node rings as often as it may, and hears all others (LISTEN, NOTIFY). memory: what
 * a connection that has done all that has for itself. docs/sizing.md tells what follows from it.
 *
 * Exits 0 when all was measured, 1 when not.
 */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import Table from 'cli-table3';
import { type Db, openDatabase } from '../src/db/engine/open.ts';
import { migrate } from '../src/db/schema/migrate.ts';
import { startDns } from '../test/helpers/dns.ts';
import { createTenant, testConfig } from '../test/helpers/world.ts';
import { progress, quantile } from './peers/figures.ts';
import { type Postgres, startPostgres } from './peers/postgres.ts';
import { type Costs, costsSoFar, less } from './peers/postgres-costs.ts';
import { childrenOf } from './peers/processes.ts';
import { claimAll, fillLanes, poll, ringAll } from './peers/simulated-nodes.ts';
import { perform, readOptions, type Stage } from './peers/stage.ts';

const given = readOptions('node scripts/sizing.ts [--nodes 1,10,100] [--mails N] … (see its header)', {
  nodes: { type: 'string', default: '1,10,100' },
  mails: { type: 'string', default: '6000' },
  seconds: { type: 'string', default: '8' },
  json: { type: 'boolean', default: false },
});
const mails = Number(given.mails);
const seconds = Number(given.seconds);

interface Row {
  nodes: number;
  claims: { perSecond: number; cpuMsAMail: number; statementsAMail: number; p50: number; p99: number };
  /** In a second. */
  polls: { statements: number; cores: number };
  bells: { rung: number; heard: number; cores: number };
  connectionMb: number;
}

async function run(stage: Stage): Promise<Row[]> {
  const settings = { max_connections: 500, shared_preload_libraries: 'pg_stat_statements' };
  const postgres = await stage.start(startPostgres(stage.directory, { isDurable: true, settings }), (it) =>
    it.stop(),
  );
  const dns = await stage.start(startDns(), (it) => it.close());
  const where = { dataDir: stage.directory, databaseUrl: postgres.url };
  const db = await stage.start(openDatabase(where), (it) => it.destroy());
  await migrate(db);
  await db.raw('create extension pg_stat_statements');
  await createTenant(db, testConfig({ ...where, dns, mtaPort: 25 }), dns);
  const rows: Row[] = [];
  for (const nodes of given.nodes.split(',').map(Number)) {
    rows.push(await stage.scene((scene) => measure(scene, postgres, db, nodes)));
  }
  return rows;
}

async function measure(stage: Stage, postgres: Postgres, db: Db, nodes: number): Promise<Row> {
  const where = { dataDir: stage.directory, databaseUrl: postgres.url };
  const dbs = await Promise.all(
    Array.from({ length: nodes }, () => stage.start(openDatabase(where), (it) => it.destroy())),
  );
  const costing = async <T>(work: () => Promise<T>): Promise<[T, Costs, number]> => {
    const before = await costsSoFar(db, postgres.pid());
    const begun = performance.now();
    const result = await work();
    const took = (performance.now() - begun) / 1000;
    return [result, less(await costsSoFar(db, postgres.pid()), before), took];
  };

  progress(`${nodes} nodes: claims`);
  const lanes = await fillLanes(db, mails);
  // The first of each connection are slower: it compiles, and reads the catalogue.
  for (const one of dbs) await poll(one);
  const [times, claiming, claimSeconds] = await costing(() => claimAll(dbs, lanes, mails));
  const connectionMb = ownMb(postgres);

  progress(`${nodes} nodes: polls`);
  const over = AbortSignal.timeout(seconds * 1000);
  const polling = async (one: Db, index: number) => {
    await sleep((1000 * index) / nodes);
    for (; !over.aborted; await sleep(1000)) await poll(one);
  };
  const [, polled, pollSeconds] = await costing(() => Promise.all(dbs.map(polling)));

  progress(`${nodes} nodes: bells`);
  const bells = await ringAll(postgres.url, nodes, seconds, costing);
  return {
    nodes,
    claims: {
      perSecond: mails / claimSeconds,
      cpuMsAMail: (claiming.cpuSeconds / mails) * 1000,
      statementsAMail: claiming.statements / mails,
      p50: quantile(times, 0.5),
      p99: quantile(times, 0.99),
    },
    polls: { statements: polled.statements / pollSeconds, cores: polled.cpuSeconds / pollSeconds },
    bells,
    connectionMb,
  };
}

/** What each process of a connection has that no other has, on average. */
function ownMb(postgres: Postgres): number {
  const own = childrenOf(postgres.pid()).flatMap((pid) => {
    const name = readFileSync(`/proc/${pid}/cmdline`, 'latin1');
    if (!name.includes('127.0.0.1')) return [];
    const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1');
    return [Number(/Pss_Anon:\s+(\d+)/.exec(rollup)?.[1] ?? 0) / 1024];
  });
  return own.reduce((sum, one) => sum + one, 0) / own.length;
}

function print(rows: Row[]): void {
  const lines: [string, (row: Row) => number, number][] = [
    ['mails claimed and recorded a second', ({ claims }) => claims.perSecond, 0],
    ['  PostgreSQL, CPU ms a mail', ({ claims }) => claims.cpuMsAMail, 2],
    ['  statements a mail', ({ claims }) => claims.statementsAMail, 2],
    ['  a claim, ms, half of them', ({ claims }) => claims.p50, 1],
    ['  a claim, ms, 99 of 100', ({ claims }) => claims.p99, 1],
    ['polls at rest, statements a second', ({ polls }) => polls.statements, 0],
    ['  processors busy with them', ({ polls }) => polls.cores, 3],
    ['bells rung a second', ({ bells }) => bells.rung, 0],
    ['  heard a second', ({ bells }) => bells.heard, 0],
    ['  processors busy with them', ({ bells }) => bells.cores, 2],
    ['a connection’s own memory, MB', ({ connectionMb }) => connectionMb, 1],
  ];
  const table = new Table({
    head: ['nodes', ...rows.map(({ nodes }) => String(nodes))],
    style: { head: [], border: [] },
    colAligns: ['left', ...rows.map(() => 'right' as const)],
  });
  table.push(...lines.map(([what, of, digits]) => [what, ...rows.map((row) => of(row).toFixed(digits))]));
  console.log(table.toString());
}

let rows: Row[] = [];
const faults = await perform('sizing', async (stage) => {
  rows = await run(stage);
  return [];
});
if (given.json) console.log(JSON.stringify({ rows, faults }, null, 2));
else if (rows.length > 0) print(rows);
if (faults.length > 0) console.error(faults.join('\n'));
process.exit(faults.length === 0 ? 0 : 1);
