/**
 * `npm run bench -- --waiting`: what a server costs while mail waits, in each state in which it can wait: CPU of a core,
 * statements and disk syncs a minute, with few and with many mails, on both databases. The mails are rows that a queue's own
 * have been multiplied to (test/lab/database/backlog-rows.ts), so that twenty thousand take seconds.
 *
 * `--against REV` measures another commit's tree in the same way. Statements are counted inside the process
 * (statement-counter.ts); syncs by strace in the minute after, because tracing wakes what it traces, and on PostgreSQL by its
 * own statistics.
 */
import { randomBytes } from 'node:crypto';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import Table from 'cli-table3';
import { tokenHash } from '#accounts/people/one-time-links.ts';
import { insertSession } from '#accounts/rows/sessions-table.ts';
import { insertUser } from '#accounts/rows/users.ts';
import { deadDomain } from '#lab/database/backlog-rows.ts';
import { median, progress } from '#lab/load/figures.ts';
import { freePort } from '#lab/load/ports.ts';
import { cpuSeconds, wakeUps, wakeUpsBetween } from '#lab/load/processes.ts';
import type { Stage } from '#lab/load/stage.ts';
import { startTracer, syncsIn } from '#lab/load/syncs.ts';
import { type SmtpSink, startSmtpSink } from '#lab/mx/smtp-sink.ts';
import { type Measured, startMeasured } from '#lab/scenes/measured-postern.ts';
import { until } from '#lab/until.ts';
import { suspend } from '#mail/queue/rows/suspensions.ts';
import { newId } from '#platform/base/id.ts';
import { type Db, isPostgres } from '#platform/database/engine/open.ts';
import { changeToken } from '#platform/database/engine/quiet-check.ts';
import { startFilled, zoneOfDead } from '../backlog/backlog-side.ts';
import { startBenchDatabase } from './bench-database.ts';

const hour = 3_600_000;
const destinations = 3;
/**
 * Circuits open, states are published, and what follows from that is looked at; and V8 collects what the start has left, three
 * times in as many minutes.
 */
const settleMs = 240_000;
const minuteMs = 60_000;
/** Nothing is written for so long, which is less than a node on PostgreSQL is silent. */
const tidiedS = 12;
const maxTidyingS = 150;

interface Waiting {
  db: Db;
  now: number;
  count: number;
  orgId: string;
}

/** Makes waiting mail (deferred, due now) wait in another way. A state that needs the server running adds to it later. */
const states: Record<
  string,
  {
    make(scene: Waiting): Promise<unknown>;
    whileOpen?: typeof openPage;
    settings?(): Promise<Record<string, string>>;
  }
> = {
  'nothing waits': {
    make: ({ db }) =>
      db('deliveries').where({ status: 'deferred' }).update({ status: 'canceled', due_at: null }),
  },
  'open circuits': { make: async () => {} },
  suspended: {
    async make({ db, now }) {
      for (let index = 0; index < destinations; index++)
        await suspend(db, {
          destination: deadDomain(index),
          reason: 'bench',
          createdAt: now,
          until: now + hour,
        });
    },
  },
  paused: { make: ({ db, now }) => db('organizations').update({ paused_at: now, paused_reason: 'bench' }) },
  scheduled: {
    make: ({ db, now }) =>
      db('deliveries')
        .where({ status: 'deferred' })
        .update({ status: 'scheduled', due_at: now + 6 * hour }),
  },
  'deferred for hours': { make: later },
  'webhooks to a dead endpoint': {
    async make(scene) {
      await later(scene);
      await queueWebhooks(scene);
    },
  },
  '1,000 return paths': {
    async make(scene) {
      await later(scene);
      await addDomains(scene, 1000);
    },
  },
  'a page open': { make: later, whileOpen: openPage },
  // The server's host is a certificate's due; the authority does not answer.
  'certificates, 1,000 domains': {
    async make(scene) {
      await later(scene);
      await addDomains(scene, 1000);
    },
    settings: async () => ({
      POSTERN_ACME: 'bench@postern.invalid',
      POSTERN_ACME_DIRECTORY: 'https://127.0.0.9:9/directory',
      POSTERN_ACME_HOST: '127.0.0.1',
      POSTERN_ACME_HTTP_PORT: `${await freePort('127.0.0.1')}`,
      POSTERN_ACME_HTTPS_PORT: 'off',
    }),
  },
};

function later({ db, now }: Waiting) {
  return db('deliveries')
    .where({ status: 'deferred' })
    .update({ due_at: now + 2 * hour });
}

/** As if its messages had failed for a while: the endpoint is paused between its tries. */
async function queueWebhooks({ db, now, count, orgId }: Waiting): Promise<void> {
  const webhookId = newId();
  const domain = await db('domains').first('dkim_private_key');
  await db('webhooks').insert({
    id: webhookId,
    org_id: orgId,
    url: 'http://127.0.0.9:9/',
    // Any text that the server's own secret has sealed; no message is posted.
    secret: domain.dkim_private_key,
    types: JSON.stringify(['*']),
    status: 'active',
    after_position: 0,
    failing_since: now - hour,
    paused_until: now + hour,
    created_at: now - hour,
    updated_at: now - hour,
  });
  const event = await db('events').orderBy('position').first('type', 'position');
  const row = {
    webhook_id: webhookId,
    type: event.type,
    position: event.position,
    status: 'queued',
    attempts: 3,
    due_at: now,
    created_at: now,
    updated_at: now,
  };
  for (let made = 0; made < count; made += 500) {
    const rows = Array.from({ length: Math.min(500, count - made) }, () => ({
      ...row,
      id: newId(),
      event_id: newId(),
      lane: newId(),
    }));
    await db.batchInsert('webhook_messages', rows, 50);
  }
}

async function addDomains({ db, now, orgId }: Waiting, count: number): Promise<void> {
  const one = await db('domains').first();
  const rows = Array.from({ length: count }, (_, index) => ({
    ...one,
    id: newId(),
    org_id: orgId,
    name: `own${index}.invalid`,
    return_path: 'used',
    checked_at: now,
    check_at: now + 12 * hour,
  }));
  await db.batchInsert('domains', rows, 20);
}

/** The requests of a browser that shows the list of emails, every four seconds as the page itself makes them. */
async function openPage({ url, db }: Measured, closed: AbortSignal): Promise<void> {
  const now = Date.now();
  const token = randomBytes(32).toString('base64url');
  const userId = (await insertUser(
    db,
    { email: 'bench@postern.invalid', name: 'Bench', isOperator: true },
    now,
  ))!;
  const session = { hash: tokenHash(token), userId, address: '127.0.0.1', agent: 'bench' };
  await insertSession(db, { ...session, expiresAt: now + 24 * hour }, now);
  const { id } = await db('organizations').where('name', 'like', 'Backlog%').first('id');
  const headers = { cookie: `postern-session=${token}`, 'hx-request': 'true' };
  let path = `/dashboard/o/${id}/emails`;
  while (!closed.aborted) {
    const response = await fetch(url + path, { headers, signal: closed });
    const text = await response.text();
    if (!response.ok) throw new Error(`${path}: ${response.status}`);
    const part = /hx-get="([^"]*part=list[^"]*)"/.exec(text)?.[1];
    if (part) path = part.replaceAll('&amp;', '&');
    await sleep(4000, null, { signal: closed });
  }
}

/** Figures for a minute, the median of some. */
export interface WaitingFigures {
  state: string;
  database: string;
  mails: number;
  tree: string;
  /** Of a core, in percent. */
  cpu: number;
  /** A second, of all threads. */
  wakeUps: number;
  statements: number;
  syncs: number;
  /** A probe costs a claim and an outcome. */
  attempts: number;
  /** The statements of all minutes, by text. */
  texts: [text: string, count: number][];
}

export interface WaitingPlan {
  tree: string;
  treeName: string;
  onPostgres: boolean;
  mails: number;
  settings: Record<string, string>;
  /** Null: all. */
  only: string[] | null;
  minutes: number;
}

/** All states at the same time: each has a server of its own, and its CPU time is its own. */
export async function measureWaiting(stage: Stage, plan: WaitingPlan): Promise<WaitingFigures[]> {
  const names = Object.keys(states).filter((name) => plan.only === null || plan.only.includes(name));
  const found: WaitingFigures[] = [];
  const parallel = plan.onPostgres ? 5 : names.length;
  for (let at = 0; at < names.length; at += parallel) {
    const some = names.slice(at, at + parallel);
    progress(
      `${plan.treeName}, ${plan.onPostgres ? 'PostgreSQL' : 'SQLite'}, ${plan.mails} mails: ${some.join(', ')}`,
    );
    found.push(
      ...(await Promise.all(some.map((name) => stage.nested((scene) => measureState(scene, plan, name))))),
    );
  }
  return found;
}

async function measureState(stage: Stage, plan: WaitingPlan, state: string): Promise<WaitingFigures> {
  const sink = await stage.start(startSmtpSink(stage.directory, ['127.0.0.2']), (it) => it.stop());
  const database = await startBenchDatabase(stage, plan.onPostgres, { fsync: 'on' });
  const postern = await startWithWaiting(
    stage,
    sink,
    {
      ...plan,
      databaseUrl: database.url,
      settings: { ...plan.settings, ...(await states[state]!.settings?.()) },
    },
    states[state]!.make,
  );
  const closed = new AbortController();
  const page = states[state]!.whileOpen?.(postern, closed.signal);
  page?.catch((error) => {
    if (!closed.signal.aborted) progress(`the page: ${error.message}`);
  });
  await sleep(settleMs, undefined, { signal: stage.interrupted });
  await untilTidied(stage, postern.db);
  const figures = await measureMinutes(stage, postern, plan.minutes);
  closed.abort();
  return {
    state,
    database: database.name,
    mails: plan.mails,
    tree: plan.treeName,
    ...figures,
  };
}

/** The maintenance jobs delete what the copies have that is old, which takes a minute or two with many. */
async function untilTidied(stage: Stage, db: Db): Promise<void> {
  let seen = '';
  let still = 0;
  for (let second = 0; second < maxTidyingS && still < tidiedS; second++) {
    const token = await changeToken(db);
    still = token === seen ? still + 1 : 0;
    seen = token;
    await sleep(1000, undefined, { signal: stage.interrupted });
  }
}

async function startWithWaiting(
  stage: Stage,
  sink: SmtpSink,
  { databaseUrl, mails, tree, settings }: WaitingPlan & { databaseUrl: string | null },
  make: (scene: Waiting) => Promise<unknown>,
): Promise<Measured> {
  const counter = join(import.meta.dirname, 'statement-counter.ts');
  const open = () =>
    startMeasured(stage, sink, {
      databaseUrl,
      tree,
      settings: {
        POSTERN_WEBHOOK_ALLOW_PRIVATE: 'true',
        BENCH_STATEMENTS: join(stage.directory, 'statements'),
        ...settings,
      },
      nodeFlags: [`--import=${counter}`],
      zone: zoneOfDead(destinations),
    });
  const amounts = { waiting: mails, past: 0, destinations, organizations: 1 };
  const db = await startFilled(stage, { open, databaseUrl, amounts });
  const now = Date.now();
  await db('deliveries').where({ status: 'queued' }).update({ status: 'deferred', attempts: 1 });
  await db('deliveries')
    .where({ status: 'deferred' })
    .update({ due_at: now, expires_at: now + 48 * hour });
  const { id: orgId } = await db('organizations').where('name', 'like', 'Backlog%').first('id');
  await make({ db, now, count: mails, orgId });
  return open();
}

async function measureMinutes(stage: Stage, postern: Measured, minutes: number) {
  const { pid, db } = postern;
  const attemptsOf = async () => Number((await db('attempts').count('* as count').first())!.count);
  const read = async () => ({
    cpu: cpuSeconds([pid]),
    woken: wakeUps([pid]),
    texts: await textsOf(stage, pid),
    attempts: await attemptsOf(),
  });
  const texts = new Map<string, number>();
  const found: Record<'cpu' | 'wakeUps' | 'statements' | 'attempts', number>[] = [];
  for (let minute = 0; minute < minutes; minute++) {
    const before = await read();
    await sleep(minuteMs, undefined, { signal: stage.interrupted });
    const after = await read();
    found.push({
      cpu: (100 * (after.cpu - before.cpu)) / (minuteMs / 1000),
      wakeUps: wakeUpsBetween(before.woken, after.woken) / (minuteMs / 1000),
      statements: noteStatements(before.texts, after.texts, texts),
      attempts: after.attempts - before.attempts,
    });
  }
  // Garbage is collected now and then.
  const of = (name: keyof (typeof found)[0]) => median(found.map((one) => one[name]));
  return {
    cpu: of('cpu'),
    wakeUps: of('wakeUps'),
    statements: of('statements'),
    attempts: of('attempts'),
    syncs: await syncsOfMinute(stage, postern),
    texts: [...texts].sort(([, a], [, b]) => b - a),
  };
}

/** The counter writes what it has when it is told to. */
async function textsOf(stage: Stage, pid: number): Promise<Map<string, number>> {
  const file = join(stage.directory, 'statements');
  await rm(file, { force: true });
  process.kill(pid, 'SIGUSR2');
  return until(async () => new Map<string, number>(JSON.parse(await readFile(file, 'utf8'))));
}

/** Adds what has come between to `texts`, and returns how many. */
function noteStatements(
  before: Map<string, number>,
  after: Map<string, number>,
  texts: Map<string, number>,
): number {
  let sum = 0;
  for (const [text, count] of after) {
    const more = count - (before.get(text) ?? 0);
    if (more > 0) texts.set(text, (texts.get(text) ?? 0) + more);
    sum += more;
  }
  return sum;
}

async function syncsOfMinute(stage: Stage, { pid, db }: Measured): Promise<number> {
  if (isPostgres(db)) {
    const read = async () => {
      const { rows } = await db.raw("select sum(fsyncs) as sum from pg_stat_io where object = 'wal'");
      return Number(rows[0].sum);
    };
    const before = await read();
    await sleep(minuteMs, undefined, { signal: stage.interrupted });
    return (await read()) - before;
  }
  const trace = join(stage.directory, 'trace');
  const tracer = await startTracer(pid, trace);
  await sleep(minuteMs, undefined, { signal: stage.interrupted });
  await tracer.stop();
  return syncsIn(trace);
}

export function waitingTable(figures: WaitingFigures[]): string {
  const head = [
    'waiting for a minute',
    'database',
    'mails',
    'tree',
    'CPU, % of a core',
    'wake-ups/s',
    'statements',
    'syncs',
    'attempts',
  ];
  const table = new Table({ head, style: { head: [], border: [], compact: true } });
  for (const { state, database, mails, tree, cpu, wakeUps, statements, syncs, attempts } of figures)
    table.push([
      state,
      database,
      mails,
      tree,
      cpu.toFixed(2),
      wakeUps.toFixed(1),
      statements,
      syncs,
      attempts,
    ]);
  return table.toString();
}

/** A minute's statements of each state, the most frequent first. */
export function statementTables(figures: WaitingFigures[], minutes: number): string {
  return figures
    .map(({ state, database, mails, tree, texts }) => {
      const table = new Table({
        head: ['a minute', 'statement'],
        style: { head: [], border: [], compact: true },
      });
      for (const [text, count] of texts)
        table.push([(count / minutes).toFixed(1), text.replaceAll(/\s+/g, ' ').slice(0, 150)]);
      return `${state}, ${database}, ${mails} mails, ${tree}\n${table}`;
    })
    .join('\n');
}
