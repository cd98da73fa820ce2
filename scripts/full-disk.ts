/**
 * `node scripts/full-disk.ts`: Postern under load on a real disk (ext4 in a file) that is full, hangs, or goes read-only. A
 * send must be answered 200 and delivered, or be refused and not charged. Where a sync failed, a send that was answered 500 may
 * have been accepted; repeated with its idempotency key it must return a replay. Needs root and Linux. Exits 0 if so, 1 if not.
 *
 *   --senders 32         concurrent calls
 *   --only NAME          full; full-large (1 MB a mail); nearly-full (the disk guard refuses with 429); long-read (a reader keeps
 *                        the database's log growing); slow (writes hang for a second); read-only; sync-fails (needs strace)
 *   --json               print all results as JSON
 */
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startDns } from '#lab/dns/dns.ts';
import { conclude } from '#lab/load/conclude.ts';
import { progress, tableOf } from '#lab/load/figures.ts';
import { type Answers, repeat, sendUntilStopped } from '#lab/load/load.ts';
import { type Audit, audit, auditRows, faultsOf, queueEmpty } from '#lab/load/reconciliation.ts';
import { makeSmallDisk, type SmallDisk } from '#lab/load/small-disk.ts';
import { readOptions, runScript, type Stage } from '#lab/load/stage.ts';
import { failSyncs } from '#lab/load/syncs.ts';
import { type Sink, startSink } from '#lab/mx/sink.ts';
import { isInstalled } from '#lab/programs/programs.ts';
import { type PosternProcess, startProcess } from '#lab/scenes/process.ts';
import { createTenant, testConfig, testSettings } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { type Db, openDatabase } from '#platform/database/engine/open.ts';
import { migrate } from '#platform/database/schema/migrate.ts';

const args = readOptions('node scripts/full-disk.ts [--senders N] [--only NAME] … (see its header)', {
  senders: { type: 'string', default: '32' },
  only: { type: 'string' },
  json: { type: 'boolean', default: false },
});
const host = '127.0.0.2';

/** A scenario's view of the server on the small disk, under constant load. */
interface ScenarioContext {
  disk: SmallDisk;
  answers: Answers;
  /** Stops the load, kills the process, does `between`, starts another. */
  restart(between?: () => Promise<void>): Promise<void>;
  /** Applies from now until the process ends. */
  failSyncs(): Promise<void>;
  withDb<T>(work: (db: Db) => Promise<T>): Promise<T>;
}

interface Scenario {
  settings: Record<string, string>;
  /** Size of the disk and of the ballast on it; 24 and 8 by default. */
  sizeMb?: number;
  ballastMb?: number;
  /** Lines of a mail; 40 by default, which are 2 KB. */
  lines?: number;
  run(context: ScenarioContext): Promise<void>;
  /** Sends have idempotency keys, and those that were not answered 200 are repeated at the end. */
  isRepeated?: boolean;
  /** A program that the scenario needs. */
  needs?: string;
  /** A status that must have been answered, in addition to 200. */
  status: number;
}

const scenarios: Record<string, Scenario> = {
  full: {
    settings: { POSTERN_MIN_FREE_SPACE: '0' },
    status: 500,
    async run({ disk, answers }) {
      await many(answers, 500);
      await disk.unload();
      await more(answers, 200);
    },
  },
  'full-large': {
    settings: { POSTERN_MIN_FREE_SPACE: '0' },
    status: 500,
    sizeMb: 400,
    ballastMb: 250,
    lines: 20_000,
    run: (context) => scenarios.full!.run(context),
  },
  'nearly-full': {
    settings: { POSTERN_MIN_FREE_SPACE: '5M' },
    status: 429,
    async run({ disk, answers, withDb }) {
      await many(answers, 429);
      await withDb((db) => queueEmpty(db, 120_000));
      await disk.unload();
      await more(answers, 200);
    },
  },
  'long-read': {
    settings: { POSTERN_MIN_FREE_SPACE: '20M' },
    status: 429,
    sizeMb: 300,
    async run({ answers, withDb }) {
      await withDb(async (db) => {
        await db.raw('begin');
        await db('emails').first();
        await many(answers, 429);
        await db.raw('commit');
      });
      await more(answers, 200);
    },
  },
  slow: {
    settings: { POSTERN_HTTP_CONCURRENCY: '16', POSTERN_MIN_FREE_SPACE: '0' },
    status: 429,
    async run({ disk, answers }) {
      await disk.unload();
      for (let times = 0; times < 10; times++) {
        await disk.freeze();
        // The time for which the disk hangs; there is no condition to wait for.
        await sleep(2500);
        await disk.thaw();
        await more(answers, 200);
      }
    },
  },
  'read-only': {
    settings: { POSTERN_MIN_FREE_SPACE: '0' },
    status: 500,
    isRepeated: true,
    async run({ disk, answers, restart }) {
      await many(answers, 200);
      await disk.fail();
      await many(answers, 500);
      await restart(() => disk.repair());
      await more(answers, 200);
    },
  },
  'sync-fails': {
    settings: { POSTERN_MIN_FREE_SPACE: '0' },
    status: 500,
    isRepeated: true,
    needs: 'strace',
    async run({ answers, restart, failSyncs }) {
      // Repeated, because the commit that survives without a sync may be that of an outcome and not of a send.
      for (let times = 0; times < 5; times++) {
        await more(answers, 200);
        await failSyncs();
        await more(answers, 500);
        await restart();
      }
      await more(answers, 200);
    },
  },
};

const countOf = (answers: Answers, status: number) => answers.get(status)?.length ?? 0;

const many = (answers: Answers, status: number) =>
  until(() => countOf(answers, status) >= 50, {
    timeout: 120_000,
    what: () => `${status}: ${summary(answers)}`,
  });

async function more(answers: Answers, status: number): Promise<void> {
  const before = countOf(answers, status);
  await until(() => countOf(answers, status) > before + 20, { timeout: 60_000, what: `more ${status}` });
}

const summary = (answers: Answers) =>
  [...answers].map(([status, list]) => `${list.length} × ${status}`).join(', ');

interface Run extends Audit, Repeats {
  scenario: string;
  answers: string;
  /** Refused, not repeated, and arrived. */
  charged: number;
  logErrors: number;
  peakMb: number;
}

/** Counts the sends that were not answered 200 and were repeated. */
interface Repeats {
  repeated: number;
  /** Had been accepted in spite of the answer. */
  accepted: number;
  /** Had been accepted and were not answered with a replay, or the reverse. */
  misjudged: number;
}

async function runScenario(stage: Stage, name: string, scenario: Scenario): Promise<Run> {
  const disk = await stage.start(
    makeSmallDisk(stage.directory, scenario.sizeMb ?? 24, scenario.ballastMb ?? 8),
    (it) => it.remove(),
  );
  const sink = await stage.start(startSink([{ host }]), (it) => it.stop());
  const zone = { 'there.invalid': { MX: ['10 mx.invalid'] }, 'mx.invalid': { A: [host] } };
  const dns = await stage.start(startDns(zone), (it) => it.close());
  const dataDir = join(disk.directory, 'postern');
  await mkdir(dataDir);
  const where = { dataDir, databaseUrl: null, dns, mtaPort: sink.port };
  const settings = testSettings(where, {
    POSTERN_MTA_RETRY: '1s',
    ...scenario.settings,
    POSTERN_LOG_LEVEL: 'info',
  });
  const config = testConfig(where);
  const withDb = async <T>(work: (db: Db) => Promise<T>) => {
    const db = await openDatabase(config);
    return work(db).finally(() => db.destroy());
  };
  const key = await withDb(async (db) => {
    await migrate(db);
    return createTenant(db, config, dns);
  });
  await disk.load();
  const launch = () => stage.start(startProcess(settings), (it) => it.end('SIGKILL'));
  return underLoad(name, scenario, { disk, sink, key, withDb, launch });
}

interface Parts extends Pick<ScenarioContext, 'disk' | 'withDb'> {
  sink: Sink;
  key: string;
  launch(): Promise<PosternProcess>;
}

async function underLoad(
  name: string,
  scenario: Scenario,
  { disk, sink, key, withDb, launch }: Parts,
): Promise<Run> {
  const answers: Answers = new Map();
  let postern = await launch();
  let pouring: Promise<void>;
  let stopped = new AbortController();
  let starts = 0;
  const begin = () => {
    starts += 1;
    stopped = new AbortController();
    const parallel = Number(args.senders);
    const target = { url: postern.url, key, lines: scenario.lines, isKeyed: scenario.isRepeated };
    pouring = sendUntilStopped(
      { ...target, name: `start${starts}`, parallel, stopped: stopped.signal },
      answers,
    );
  };
  const end = () => {
    stopped.abort();
    return pouring;
  };
  let logErrors = 0;
  begin();
  try {
    await scenario.run({
      disk,
      answers,
      withDb,
      failSyncs: () => failSyncs(postern.pid),
      async restart(between = async () => {}) {
        await end();
        await postern.end('SIGKILL');
        logErrors += countLogErrors(postern);
        await between();
        postern = await launch();
        begin();
      },
    });
  } finally {
    await end();
  }
  const unsure = scenario.isRepeated ? notPromised(answers) : [];
  const repeats = await withDb((db) =>
    repeatAll(db, { url: postern.url, key, lines: scenario.lines }, unsure),
  );
  await withDb((db) => queueEmpty(db, 120_000));
  const accepted = await sink.records();
  const arrived = accepted.map(({ to }) => to);
  const promised = [...(answers.get(200) ?? []), ...unsure];
  const comparison = await withDb((db) => audit(db, promised, arrived));
  const refused = new Set(
    scenario.isRepeated ? [] : [...(answers.get(500) ?? []), ...(answers.get(429) ?? [])],
  );
  const charged = arrived.filter((to) => refused.has(to)).length;
  logErrors += countLogErrors(postern);
  const peakMb = await peakMbOf(postern);
  await postern.end('SIGKILL');
  return { scenario: name, ...comparison, ...repeats, charged, answers: summary(answers), logErrors, peakMb };
}

const notPromised = (answers: Answers) =>
  [...answers].filter(([status]) => status !== 200).flatMap(([, list]) => list);

/**
 * Repeats each send with its key. A send that was accepted twice would be two copies without a flag
 * (test/lab/load/reconciliation.ts).
 */
async function repeatAll(db: Db, target: Parameters<typeof repeat>[0], unsure: string[]): Promise<Repeats> {
  const known = new Set<string>(await db('deliveries').pluck('recipient'));
  const replays = await repeat(target, unsure);
  return {
    repeated: unsure.length,
    accepted: unsure.filter((to) => known.has(to)).length,
    misjudged: unsure.filter((to) => known.has(to) !== replays.has(to)).length,
  };
}

/** Peak memory of the process. */
async function peakMbOf({ pid }: PosternProcess): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Math.round(Number(/VmHWM:\s+(\d+)/.exec(status)![1]) / 1024);
}

/** Number of warnings and errors in the log. */
const countLogErrors = ({ lines }: PosternProcess) =>
  lines.filter((line) => /"level":"(error|warn)"/.test(line)).length;

function wrongWith(run: Run): string[] {
  const { status } = scenarios[run.scenario]!;
  const faults = faultsOf(run);
  if (run.charged > 0) faults.push(`${run.charged} mails were refused, and arrived`);
  if (run.misjudged > 0)
    faults.push(`${run.misjudged} repeats were replays of nothing, or were taken a second time`);
  if (!run.answers.includes(`× ${status}`)) faults.push(`nothing was answered ${status}`);
  return faults.map((fault) => `${run.scenario}: ${fault}`);
}

function print(runs: Run[]): void {
  const rows: [string, (one: Run) => string | number][] = [
    ['answered', (one) => one.answers.replaceAll(', ', '\n')],
    ...auditRows,
    ['refused, and arrived', (one) => one.charged],
    ['repeated, of these accepted before', (one) => `${one.repeated}, ${one.accepted}`],
    ['memory, at most', (one) => `${one.peakMb} MB`],
    ['lines for the operator', (one) => one.logErrors],
  ];
  const head = ['', ...runs.map(({ scenario }) => scenario)];
  console.log(
    tableOf(
      head,
      rows.map(([what, cell]) => [what, ...runs.map(cell)]),
    ),
  );
}

const runs: Run[] = [];
const faults = await runScript('full-disk', async (stage) => {
  for (const [name, scenario] of Object.entries(scenarios)) {
    if (args.only && args.only !== name) continue;
    if (scenario.needs && !isInstalled(scenario.needs)) {
      progress(`${name}: left out, ${scenario.needs} is not installed`);
      continue;
    }
    progress(name);
    runs.push(await stage.nested((scene) => runScenario(scene, name, scenario)));
  }
  return runs.flatMap(wrongWith);
});
conclude({
  faults,
  json: args.json && { runs },
  print: () => print(runs),
});
