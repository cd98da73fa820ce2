/**
 * `node scripts/soak.ts`: kills Postern with SIGKILL under load, again and again, on SQLite and on PostgreSQL. Every fourth
 * round it is killed while it recovers. In the end nothing may be lost or sent twice without a flag, and credits must be exact
 * (test/lab/load/reconciliation.ts). Exits 0 if so, 1 if not.
 *
 * It also prints how many mails each kill sent twice, and the time from the reply to the final dot until the outcome is on
 * disk: at full speed from a start on, and at 100 mails a second. For that it runs once more without kills.
 *
 *   --rounds 200 --senders 16 --longest 800   kills on each database; concurrent calls; milliseconds until a kill, at random
 *   --database sqlite                         only this one; or postgres
 *   --unkilled 15                             seconds of each of the two loads without kills
 *   --patience 300                            seconds until the queue must be empty in the end
 *   --set NAME=VALUE, --json                  a Postern setting, may be repeated; print all results as JSON
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startPostgres } from '#lab/database/postgres.ts';
import { startDns } from '#lab/dns/dns.ts';
import { conclude } from '#lab/load/conclude.ts';
import { median, progress, tableOf } from '#lab/load/figures.ts';
import { type Answers, sendUntilStopped } from '#lab/load/load.ts';
import { type Audit, audit, auditRows, faultsOf, queueEmpty } from '#lab/load/reconciliation.ts';
import { readOptions, runScript, type Stage, settingsOf } from '#lab/load/stage.ts';
import { type Sink, startSink } from '#lab/mx/sink.ts';
import { type PosternProcess, startProcess } from '#lab/scenes/process.ts';
import { createTenant, testConfig, testSettings } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { openDatabase } from '#platform/database/engine/open.ts';
import { migrate } from '#platform/database/schema/migrate.ts';
import { answeredIn, measureToDisk, spreadOf, type ToDisk } from './soak/to-disk.ts';

const args = readOptions(
  'node scripts/soak.ts [--rounds N] [--database sqlite|postgres] … (see its header)',
  {
    rounds: { type: 'string', default: '200' },
    database: { type: 'string' },
    senders: { type: 'string', default: '16' },
    longest: { type: 'string', default: '800' },
    unkilled: { type: 'string', default: '15' },
    patience: { type: 'string', default: '300' },
    set: { type: 'string', multiple: true, default: [] },
    json: { type: 'boolean', default: false },
  },
);
const rounds = Number(args.rounds);
const databases = args.database ? [args.database] : ['sqlite', 'postgres'];
const senders = Number(args.senders);
const patienceMs = Number(args.patience) * 1000;
const host = '127.0.0.2';

type Accepted = Awaited<ReturnType<Sink['records']>>;

interface Run extends Audit {
  database: string;
  kills: number;
  refused: number;
  drainSeconds: number;
  /** Extra copies that each kill caused. */
  perKill: number[];
  toDisk: ToDisk;
}

async function soak(stage: Stage, database: string): Promise<Run> {
  const sink = await stage.start(startSink([{ host }]), (it) => it.stop());
  const zone = { 'there.invalid': { MX: ['10 mx.invalid'] }, 'mx.invalid': { A: [host] } };
  const dns = await stage.start(startDns(zone), (it) => it.close());
  const server =
    database === 'postgres' ? await stage.start(startPostgres(stage.directory), (it) => it.stop()) : null;
  const dataDir = join(stage.directory, 'postern');
  await mkdir(dataDir);
  const where = { dataDir, databaseUrl: server?.url ?? null, dns, mtaPort: sink.port };
  const settings = testSettings(where, {
    POSTERN_MTA_RETRY: '1s',
    ...settingsOf(args.set),
    POSTERN_LOG_LEVEL: 'info',
  });
  const config = testConfig(where);
  const db = await stage.start(openDatabase(config), (it) => it.destroy());
  await migrate(db);
  const key = await createTenant(db, config, dns);
  const answers: Answers = new Map();
  const answered = () => answeredIn(answers);
  const killedAt: number[] = [];

  for (let round = 1; round <= rounds; round++) {
    const postern = await launch(stage, settings);
    const before = answered().length;
    await killUnderLoad(postern, { name: `r${round}`, key }, answers, async () => {
      if (round % 4 === 0) return;
      await until(() => answered().length > before, { timeout: 60_000, what: 'a first answer' });
    });
    killedAt.push(performance.timeOrigin + performance.now());
    if (round % 10 === 0) progress(`${database}: killed ${round} times, ${answered().length} answered 200`);
  }
  const begun = performance.now();
  const postern = await launch(stage, settings);
  await queueEmpty(db, patienceMs);
  const drainSeconds = (performance.now() - begun) / 1000;
  await postern.end('SIGTERM');
  const toDisk = await measureToDisk(stage, {
    where: config,
    launch: () => startProcess(settings),
    sink,
    key,
    answers,
    senders,
    seconds: Number(args.unkilled),
  });
  const accepted = await sink.records();
  const comparison = await audit(
    db,
    answered(),
    accepted.map(({ to }) => to),
  );
  const perKill = extraCopiesOf(accepted, killedAt);
  return {
    database,
    kills: rounds,
    refused: refusedIn(answers),
    drainSeconds,
    perKill,
    toDisk,
    ...comparison,
  };
}

/**
 * For each kill, the number of mails that were sent again because their outcomes were not on disk. `killedAt`: once it was
 * gone.
 */
function extraCopiesOf(accepted: Accepted, killedAt: number[]): number[] {
  const counts = killedAt.map(() => 0);
  const lastAt = new Map<string, number>();
  for (const { to, at } of accepted.toSorted((one, other) => one.at - other.at)) {
    const kill = killedAt.findIndex((time) => time >= (lastAt.get(to) ?? Number.POSITIVE_INFINITY));
    if (kill >= 0) counts[kill]! += 1;
    lastAt.set(to, at);
  }
  return counts;
}

/** A response other than 200. */
function refusedIn(answers: Answers): number {
  return [...answers].reduce((sum, [status, list]) => (status > 200 ? sum + list.length : sum), 0);
}

function launch(stage: Stage, settings: Record<string, string>): Promise<PosternProcess> {
  return stage.start(startProcess(settings), (it) => it.end('SIGKILL'));
}

async function killUnderLoad(
  postern: PosternProcess,
  load: { name: string; key: string },
  answers: Answers,
  ready: () => Promise<void>,
): Promise<void> {
  const gone = new AbortController();
  const target = { ...load, url: postern.url, parallel: senders, stopped: gone.signal };
  const pouring = sendUntilStopped(target, answers);
  await ready();
  await sleep(Math.random() * Number(args.longest));
  await postern.end('SIGKILL');
  gone.abort();
  await pouring;
}

function print(runs: Run[]): void {
  const rows: [string, (one: Run) => string | number][] = [
    ['killed', (one) => one.kills],
    ...auditRows,
    ['answered otherwise', (one) => one.refused],
    [
      'extra copies for each kill: median, max',
      ({ perKill }) => `${median(perKill)}, ${Math.max(...perKill)}`,
    ],
    ['250 to disk at full speed: p50 / p95 / p99 / max', ({ toDisk }) => spreadOf(toDisk.fullSpeed)],
    ['250 to disk at 100 a second', ({ toDisk }) => spreadOf(toDisk.steady)],
    ['until the queue was empty', (one) => `${one.drainSeconds.toFixed(1)} s`],
  ];
  const head = ['', ...runs.map(({ database }) => database)];
  console.log(
    tableOf(
      head,
      rows.map(([what, cell]) => [what, ...runs.map(cell)]),
    ),
  );
}

const runs: Run[] = [];
const faults = await runScript('soak', async (stage) => {
  for (const database of databases) runs.push(await stage.nested((scene) => soak(scene, database)));
  return runs.flatMap((run) => faultsOf(run).map((fault) => `${run.database}: ${fault}`));
});
conclude({
  faults,
  json: args.json && { runs },
  print: () => print(runs),
  holds: 'Nothing is lost.',
});
