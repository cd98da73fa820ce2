/**
 * The times that the model takes (scale-model.ts), measured on this machine in one run: a mail of 4 KB through one, two and three
 * real nodes on a PostgreSQL that syncs, and the statements by which nodes hear of each other.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startPostgres } from '#lab/database/postgres.ts';
import { progress, quantile } from '#lab/load/figures.ts';
import { startLoader } from '#lab/load/loader.ts';
import { cpuSeconds, mainThreadSeconds } from '#lab/load/processes.ts';
import type { Stage } from '#lab/load/stage.ts';
import { startSmtpSink } from '#lab/mx/smtp-sink.ts';
import { startMeasured } from '#lab/scenes/measured-postern.ts';
import { type PublishedState, saveStates } from '#mail/record/rows/destination-status-rows.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { heartbeat, readHeartbeats, readStates } from '#platform/database/tables/nodes.ts';
import { bodyOf, type Case, hostsOf, recipientsOf } from '../bench/bench-cases.ts';

/** Milliseconds, of CPU but for the sync. */
export interface Costs {
  /** Of a node for a mail: its event loop, and its other threads. */
  loopMs: number;
  threadsMs: number;
  /** Of PostgreSQL for a mail, with its part of the commits, and for a statement. */
  mailMs: number;
  statementMs: number;
  syncMs: number;
  /** A state of a destination that a node writes, passes in a scan, and reads. */
  stateMs: number;
  stateScanMs: number;
  stateReadMs: { database: number; node: number };
  /** Of the callers and the hosts for a mail; on machines of their own it is 0. */
  restMs: number;
}

/** A measurement of so many nodes, which share the machine with PostgreSQL, callers and hosts. */
export interface Point {
  nodes: number;
  /** CPU milliseconds for a mail, whatever else the machine does: of the nodes, of PostgreSQL, of callers and hosts. */
  nodeMs: number;
  databaseMs: number;
  restMs: number;
  transactions: number;
}

const work: Case = { name: '4k', bytes: 4096, tracking: false, destinations: 8, batch: 1 };
export const callers = 32;
const mailsOfNode = 2_000;
const mailsToWarm = 4_000;
const timeoutMs = 300_000;

type Measured = Point & { loopMs: number };

export async function measureCosts(
  stage: Stage,
  counts: number[],
): Promise<{ costs: Costs; points: Point[] }> {
  const sink = await stage.start(startSmtpSink(stage.directory, hostsOf(work)), (it) => it.stop());
  const postgres = await stage.start(startPostgres(stage.directory, { fsync: 'on' }), (it) => it.stop());
  const nodes: Awaited<ReturnType<typeof startNode>>[] = [];

  async function startNode(name: string) {
    const directory = join(stage.directory, name);
    await mkdir(directory);
    const settings = { POSTERN_SECRET: 'one secret for all of these nodes' };
    const node = await startMeasured({ ...stage, directory }, sink, { settings, databaseUrl: postgres.url });
    return { ...node, loader: await stage.start(startLoader(), (it) => it.stop()) };
  }

  async function measure(label: string, mails: number): Promise<Measured> {
    const pids = nodes.map(({ pid }) => pid);
    const { db } = nodes[0]!;
    const look = async () => {
      const [all, own, database] = [[process.pid], pids, [postgres.pid()]].map(cpuSeconds) as [
        number,
        number,
        number,
      ];
      const { rows } = await db.raw('select sum(xact_commit) as count from pg_stat_database');
      const loop = pids.reduce((sum, pid) => sum + mainThreadSeconds(pid), 0);
      return { own, database, loop, rest: all - own - database, transactions: Number(rows[0].count) };
    };
    const taken = await sink.count();
    const before = await look();
    const body = bodyOf(work);
    await Promise.all(
      nodes.map(({ loader, url, key }, index) => {
        const to = recipientsOf(work, mails, `${label}n${index}`);
        return loader.run({ url, key, body, to, parallel: callers, rate: null, batch: 1 });
      }),
    );
    const count = mails * nodes.length;
    await sink.reached(taken + count, stage.interrupted, timeoutMs);
    // The last outcomes are still being written.
    await sleep(300);
    const after = await look();
    const ofMail = (name: keyof typeof after) => (after[name] - before[name]) / count;
    return {
      nodes: nodes.length,
      nodeMs: 1000 * ofMail('own'),
      databaseMs: 1000 * ofMail('database'),
      loopMs: 1000 * ofMail('loop'),
      restMs: 1000 * ofMail('rest'),
      transactions: ofMail('transactions'),
    };
  }

  const points: Measured[] = [];
  for (const number of counts) {
    while (nodes.length < number) nodes.push(await startNode(`node${nodes.length}`));
    progress(`${number} nodes: warming up, then ${mailsOfNode} mails each`);
    await measure(`warm${number}`, Math.ceil(mailsToWarm / number));
    points.push(await measure(`full${number}`, mailsOfNode));
  }
  const statements = await measureStatements(nodes[0]!.db, postgres.pid());
  return { costs: { ...costsOf(points[0]!), ...statements }, points };
}

/** At full speed, so a mail has its part of a commit. */
function costsOf({ loopMs, nodeMs, databaseMs, restMs }: Measured) {
  return { loopMs, threadsMs: nodeMs - loopMs, mailMs: databaseMs, restMs };
}

const repeats = 500;
const states = 5_000;

async function measureStatements(db: Db, pid: number) {
  async function timed(count: number, run: () => Promise<unknown>) {
    const before = { database: cpuSeconds([pid]), own: process.cpuUsage() };
    const walls: number[] = [];
    for (let number = 0; number < count; number++) {
      const begun = performance.now();
      await run();
      walls.push(performance.now() - begun);
    }
    const { user, system } = process.cpuUsage(before.own);
    return {
      database: ((cpuSeconds([pid]) - before.database) * 1000) / count,
      node: (user + system) / 1000 / count,
      // Other programs make many of them longer.
      wall: quantile(walls, 0.1),
    };
  }
  const read = await timed(4 * repeats, () => readHeartbeats(db, 'one'));
  const beat = await timed(repeats, () =>
    heartbeat(db, { node: 'one', members: '', at: 0, version: '' }, () => {}),
  );
  await db('nodes').where({ node: 'one' }).delete();
  const written = new Map(Array.from({ length: states }, (_, number) => [`d${number}.example`, state]));
  const saved = await timed(4, () => saveStates(db, 'one', written, Date.now(), () => {}));
  const found = await timed(10, async () =>
    (await readStates(db, 'two', 0)).map((row) => JSON.parse(row.state).told),
  );
  const scanned = await timed(100, () => readStates(db, 'two', Date.now() + 60_000));
  await db('destinations').where({ node: 'one' }).delete();
  return {
    statementMs: read.database,
    syncMs: Math.max(beat.wall - 2 * read.wall, 0.1),
    stateMs: saved.database / states,
    stateScanMs: Math.max(scanned.database - read.database, 0) / states,
    stateReadMs: { database: found.database / states, node: found.node / states },
  };
}

/** As a destination under way has it. */
const state: PublishedState = {
  connections: 3,
  limit: 5,
  waiting: 2,
  circuit: null,
  busySince: null,
  busyReply: null,
  busyAt: 0,
  lastReply: '250 2.0.0 OK: queued as 4C1B2A',
  lastReplyAt: 1_800_000_000_000,
  problem: null,
  accepted: { since: 1_800_000_000_000, count: 120, ms: 24_000 },
  rests: false,
  told: {
    open: 3,
    limit: 5,
    ceiling: null,
    restUntil: 0,
    restMs: 2000,
    busySince: null,
    busyAt: 0,
    circuit: null,
    answeredAt: 1_800_000_000_000,
  },
};
