/**
 * `node scripts/two-nodes.ts`: what a second node brings. The same work by one Postern and by two on one PostgreSQL, in
 * turn; with the processor time of each part for a thousand mails, and with each node held to a share of a processor, so
 * that the nodes are what binds, and a machine of few processors shows what a larger one would do. Linux, as root.
 *
 *   --share 0.35           of a processor for each node; `none`: as much as there is
 *   --rounds 4             of each, in turn
 *   --mails 2400           for each node in a round
 *   --parallel 24          callers at once, of each node
 *   --organizations 2      or 1, where both nodes charge the same account
 *   --set NAME=VALUE       a setting of Postern's; may be given again
 *   --json                 everything as JSON
 *
 * Mails of 4 KB, one recipient each, to eight destinations; PostgreSQL with all its syncs. The second node is frozen while
 * the first is measured alone: it is as warm as the other when it goes on. Figures are medians over the rounds.
 *
 * Exits 0 when two nodes delivered at least 1.6 times what one does, 1 when not; without a share, 1 for trouble alone.
 */

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import Table from 'cli-table3';
import { until } from '../test/helpers/until.ts';
import { bodyOf, type Case, hostsOf, recipientsOf } from './peers/bench-cases.ts';
import { conclude } from './peers/conclude.ts';
import { makeShare, type Share } from './peers/cpu-share.ts';
import { median, progress } from './peers/figures.ts';
import { type Loader, startLoader } from './peers/loader.ts';
import { type Measured, startMeasured } from './peers/measured-postern.ts';
import { type Postgres, startPostgres } from './peers/postgres.ts';
import { costsSoFar, less } from './peers/postgres-costs.ts';
import { cpuSeconds, peakMb } from './peers/processes.ts';
import { type SmtpSink, startSmtpSink } from './peers/smtp-sink.ts';
import { perform, readOptions, type Stage, settingsOf } from './peers/stage.ts';

const given = readOptions('node scripts/two-nodes.ts [--share 0.35] [--rounds N] … (see its header)', {
  share: { type: 'string', default: '0.35' },
  rounds: { type: 'string', default: '4' },
  mails: { type: 'string', default: '2400' },
  parallel: { type: 'string', default: '24' },
  organizations: { type: 'string', default: '2' },
  set: { type: 'string', multiple: true, default: [] },
  json: { type: 'boolean', default: false },
});
const share = given.share === 'none' ? null : Number(given.share);
const mailsANode = Number(given.mails);
const work: Case = { name: '4k', bytes: 4096, tracking: false, destinations: 8 };
const wanted = 1.6;
/** Code that runs often is compiled anew; after these the cost of a mail stays as it is. */
const mailsToWarm = 10_000;

interface Node extends Measured {
  cpu: Share | null;
  /** One for each organization. */
  loaders: Loader[];
}

interface Round {
  nodes: number;
  deliveredPerSecond: number;
  /** Processor seconds for a thousand mails. */
  nodeCpu: number;
  postgresCpu: number;
  /** Callers, the exchanger, the script. */
  restCpu: number;
  /** Of what the nodes were allowed; NaN without a share. */
  shareUsed: number;
  /** Processors that were busy with all of this. */
  busy: number;
  /** For each mail. */
  transactions: number;
  walBytes: number;
}

async function run(stage: Stage) {
  const sink = await stage.start(startSmtpSink(stage.directory, hostsOf(work)), (it) => it.stop());
  const postgres = await stage.start(startPostgres(stage.directory, { isDurable: true }), (it) => it.stop());
  const nodes = [
    await startNode(stage, 'one', sink, postgres),
    await startNode(stage, 'two', sink, postgres),
  ];
  const keys = nodes.map(({ key }) => key).slice(0, Number(given.organizations));
  const parts = { sink, postgres, keys };
  progress(`warming up; ${sink.kind}, ${await nodes[0]!.durability()}`);
  await round(parts, nodes, 'warm', mailsToWarm);
  for (const { cpu } of nodes) cpu?.limit(share);
  const rounds: Round[] = [];
  for (let n = 0; n < Number(given.rounds); n++) {
    // One before two, then two before one: what goes better with time favours neither.
    for (const count of n % 2 === 0 ? [1, 2] : [2, 1]) {
      rounds.push(await besides(parts, nodes, count, `round${n}of${count}`));
      const { deliveredPerSecond } = rounds.at(-1)!;
      progress(`round ${n + 1}: ${count} delivered ${deliveredPerSecond.toFixed(0)} a second`);
    }
  }
  return { rounds, peakMb: nodes.map(({ pid }) => peakMb([pid])), isShared: nodes.every(({ cpu }) => cpu) };
}

/** So many of them; the others stand still. */
async function besides(parts: Parts, nodes: Node[], count: number, label: string): Promise<Round> {
  const others = nodes.slice(count);
  for (const { pid } of others) process.kill(pid, 'SIGSTOP');
  const measured = await round(parts, nodes.slice(0, count), label, mailsANode);
  for (const { pid } of others) process.kill(pid, 'SIGCONT');
  // What waited for them meanwhile (their timers, their connections to the bell) is over by then.
  if (others.length > 0) await sleep(2000);
  return measured;
}

async function startNode(stage: Stage, name: string, sink: SmtpSink, postgres: Postgres): Promise<Node> {
  const cpu = share === null ? null : makeShare(name);
  if (cpu) await stage.start(Promise.resolve(cpu), (it) => it.remove());
  const settings = { POSTERN_SECRET: 'one secret for all of these nodes', ...settingsOf(given.set) };
  const inside = { ...stage, directory: join(stage.directory, name) };
  await mkdir(inside.directory);
  const postern = await startMeasured(inside, sink, { settings, databaseUrl: postgres.url });
  cpu?.add(postern.pid);
  const starting = Array.from({ length: Number(given.organizations) }, () =>
    stage.start(startLoader(), (it) => it.stop()),
  );
  return { ...postern, cpu, loaders: await Promise.all(starting) };
}

interface Parts {
  sink: SmtpSink;
  postgres: Postgres;
  keys: string[];
}

async function round(
  { sink, postgres, keys }: Parts,
  nodes: Node[],
  label: string,
  aNode: number,
): Promise<Round> {
  const mails = aNode * nodes.length;
  const { db } = nodes[0]!;
  const pids = nodes.map(({ pid }) => pid);
  const look = async () => ({
    postgres: await costsSoFar(db, postgres.pid()),
    nodes: cpuSeconds(pids),
    all: cpuSeconds([process.pid]),
    at: performance.now(),
  });
  const taken = await sink.count();
  const before = await look();
  const begun = performance.timeOrigin + before.at;
  await Promise.all(
    nodes.flatMap((node, index) =>
      node.loaders.map((loader, org) => {
        const to = recipientsOf(work, aNode / keys.length, `${label}n${index}o${org}`);
        const parallel = Math.ceil(Number(given.parallel) / keys.length);
        return loader.run({ url: node.url, key: keys[org]!, body: bodyOf(work), to, parallel, rate: null });
      }),
    ),
  );
  const lastAt = await sink.reached(taken + mails, AbortSignal.timeout(300_000), 300_000);
  // The last outcomes are still being written; they are part of the work.
  await until(async () => !(await db('deliveries').whereNotNull('due_at').first('id')), { timeout: 60_000 });
  const after = await look();
  const ofPostgres = less(after.postgres, before.postgres);
  const perThousand = (seconds: number) => (seconds / mails) * 1000;
  const [ofNodes, ofAll] = [after.nodes - before.nodes, after.all - before.all];
  const seconds = (after.at - before.at) / 1000;
  return {
    nodes: nodes.length,
    deliveredPerSecond: (mails / (lastAt - begun)) * 1000,
    nodeCpu: perThousand(ofNodes),
    postgresCpu: perThousand(ofPostgres.cpuSeconds),
    restCpu: perThousand(ofAll - ofNodes - ofPostgres.cpuSeconds),
    shareUsed: share === null ? Number.NaN : ofNodes / (seconds * share * nodes.length),
    busy: ofAll / seconds,
    transactions: ofPostgres.transactions / mails,
    walBytes: ofPostgres.walBytes / mails,
  };
}

type Result = Awaited<ReturnType<typeof run>>;

const figures: [what: string, of: (round: Round) => number, digits: number][] = [
  ['delivered a second', (round) => round.deliveredPerSecond, 0],
  ['CPU s a thousand, the nodes', (round) => round.nodeCpu, 2],
  ['CPU s a thousand, PostgreSQL', (round) => round.postgresCpu, 2],
  ['CPU s a thousand, callers and exchanger', (round) => round.restCpu, 2],
  ['of their share the nodes used', (round) => round.shareUsed, 2],
  ['processors busy', (round) => round.busy, 2],
  ['transactions a mail', (round) => round.transactions, 2],
  ['WAL bytes a mail', (round) => round.walBytes, 0],
];

const of = ({ rounds }: Result, nodes: number, figure: (round: Round) => number) =>
  median(rounds.filter((round) => round.nodes === nodes).map(figure));

/** Each pair of rounds by itself: what else the machine did in that minute is in both. */
function ratioOf({ rounds }: Result, figure: (round: Round) => number): number {
  const [one, two] = [1, 2].map((nodes) => rounds.filter((round) => round.nodes === nodes).map(figure));
  return median(one!.map((value, index) => two![index]! / value));
}

function print(result: Result): void {
  const table = new Table({ head: ['', 'one node', 'two nodes', 'ratio'], style: { head: [], border: [] } });
  for (const [what, figure, digits] of figures) {
    const [one, two] = [1, 2].map((nodes) => of(result, nodes, figure).toFixed(digits));
    if (one !== 'NaN') table.push([what, one, two, ratioOf(result, figure).toFixed(2)]);
  }
  console.log(table.toString());
  const growth = ratioOf(result, ({ nodeCpu }) => nodeCpu);
  const bound = 1 / of(result, 2, ({ postgresCpu }) => postgresCpu);
  console.log(
    `A mail costs a node ${growth.toFixed(2)} times as much beside a second one: with processors for each, two do ` +
      `${(2 / growth).toFixed(2)} times what one does, as long as PostgreSQL has some for ` +
      `${(bound * 1000).toFixed(0)} mails a second and processor. Memory at most: ${result.peakMb.join(', ')} MB.`,
  );
}

let result: Result | undefined;
const faults = await perform('two-nodes', async (stage) => {
  result = await run(stage);
  if (share === null) return [];
  if (!result.isShared)
    return ['no control group could be made: as root, with the cpu controller, or --share none'];
  const ratio = ratioOf(result, ({ deliveredPerSecond }) => deliveredPerSecond);
  return ratio >= wanted ? [] : [`two nodes did ${ratio.toFixed(2)} times what one did; wanted is ${wanted}`];
});
conclude({
  faults,
  json: given.json ? { ...result } : false,
  print: () => result && print(result),
});
