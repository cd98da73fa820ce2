/**
 * `node scripts/simulate.ts --scale`: how Postern scales, by its real queue in virtual time (scale-model.ts) with the costs of this
 * machine (scale-costs.ts): mails a second and what limits them with 1 to 100 nodes, destinations by the million, and what was
 * measured here beside what the model says of the same. The laws are in docs/sizing.md.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { text } from 'node:stream/consumers';
import { progress, tableOf } from '#lab/load/figures.ts';
import { runScript } from '#lab/load/stage.ts';
import { type Costs, callers, measureCosts, type Point } from './scale-costs.ts';
import type { DestinationFigures } from './scale-destinations.ts';
import type { Figures, Layout } from './scale-model.ts';

/** PostgreSQL on a machine of its own, hosts as they are elsewhere. */
const apart: Omit<Layout, 'nodes'> = {
  processors: { database: 8, node: 2 },
  destinations: 200,
  hostMs: 200,
  isOneOrganization: false,
  callers: 64,
  seconds: 3,
};
const nodeCounts = [1, 2, 5, 10, 20, 50, 100];
const measuredCounts = [1, 2, 3];
const destinationCounts = [1_000, 10_000, 100_000, 1_000_000];
const deadCounts = [3, 100, 1_000, 10_000];

export async function showScale(): Promise<boolean> {
  const faults = await runScript('scale', async (stage) => {
    const { costs, points } = await stage.nested((scene) => measureCosts(scene, measuredCounts));
    console.log(`Costs in milliseconds: ${JSON.stringify(costs, rounded)}\n`);
    console.log(`${await comparison(costs, points)}\n`);
    console.log(`${await nodesTable(costs)}\n`);
    console.log(`${await destinationsTable()}\n`);
    console.log(await deadTable(costs));
    return [];
  });
  if (faults.length > 0) console.error(faults.join('\n'));
  return faults.length === 0;
}

async function comparison(costs: Costs, points: Point[]): Promise<string> {
  const layouts = points.map(
    ({ nodes }): Layout => ({
      ...apart,
      nodes,
      processors: { shared: availableParallelism() },
      destinations: 8,
      hostMs: 1,
      callers,
    }),
  );
  const models = await runModels(costs, layouts);
  const rows = points.map(({ nodes, nodeMs, databaseMs, restMs, transactions }, index) => {
    const model = models[index]!;
    const of = (total: number) => total / model.mails;
    const cells = [
      [nodeMs, of(model.nodesMs)],
      [databaseMs, of(model.databaseMs)],
      // A statement that reads is a transaction of its own.
      [transactions, of(model.transactions + model.statements)],
      [nodeMs + databaseMs + restMs, of(model.nodesMs) + of(model.databaseMs) + costs.restMs],
    ] as const;
    return [nodes, ...cells.map(([measured, modeled]) => besides(measured, modeled))];
  });
  const head = [
    'nodes',
    'CPU ms a mail, nodes',
    'PostgreSQL',
    'transactions a mail',
    'CPU ms of all programs',
  ];
  return tableOf(head, rows);
}

const besides = (measured: number, modeled: number) =>
  `${measured.toFixed(2)}, model ${modeled.toFixed(2)} (${(100 * (modeled / measured - 1)).toFixed(0)} %)`;

async function nodesTable(costs: Costs): Promise<string> {
  const kinds: [string, Partial<Layout>][] = [
    ['each its own organization', {}],
    ['one organization', { isOneOrganization: true }],
    ['one destination', { destinations: 1 }],
    ['20,000 destinations', { destinations: 20_000 }],
  ];
  const rows: (string | number)[][] = [];
  for (const [kind, changes] of kinds) {
    const layouts = nodeCounts.map((nodes): Layout => ({ ...apart, ...changes, nodes }));
    progress(kind);
    const models = await runModels(costs, layouts);
    const speeds = models.map(({ mails }) => mails / apart.seconds);
    for (const [index, one] of models.entries())
      rows.push([
        index === 0 ? kind : '',
        nodeCounts[index]!,
        speeds[index]!.toFixed(0),
        limitOf(one, layouts[index]!),
        (8 * one.busy.database).toFixed(1),
        (one.transactions / one.mails).toFixed(2),
        (one.statesRead / apart.seconds).toFixed(0),
      ]);
    rows.push(['', '', '', lawOf(nodeCounts, speeds), '', '', '']);
  }
  const head = [
    '',
    'nodes',
    'mails/s',
    'limit',
    'processors of PostgreSQL',
    'transactions a mail',
    'states read/s',
  ];
  return tableOf(head, rows);
}

function limitOf({ busy, mails }: Figures, { destinations, hostMs, seconds }: Layout): string {
  // Twenty connections, each for one mail at a time.
  const byHosts = (destinations * 20 * 1000) / hostMs!;
  const used = { ...busy, destinations: mails / seconds / byHosts };
  const names: Record<keyof typeof used, string> = {
    loop: 'event loop of the nodes',
    processors: 'processors of the nodes',
    database: 'processors of PostgreSQL',
    log: 'syncs of PostgreSQL',
    organization: 'commits of one organization',
    destinations: 'connections to the destinations',
  };
  const [name, share] = Object.entries(used).toSorted(([, a], [, b]) => b - a)[0]!;
  return `${names[name as keyof typeof used]}, ${(100 * Math.min(share, 1)).toFixed(0)} % busy`;
}

/** The Universal Scalability Law: X(N) = X(1) N / (1 + a (N − 1) + b N (N − 1)), by least squares. */
function lawOf(counts: number[], speeds: number[]): string {
  let [aa, ab, bb, ay, by] = [0, 0, 0, 0, 0];
  for (const [index, n] of counts.entries()) {
    const [a, b, y] = [n - 1, n * (n - 1), (n * speeds[0]!) / speeds[index]! - 1];
    aa += a * a;
    ab += a * b;
    bb += b * b;
    ay += a * y;
    by += b * y;
  }
  const determinant = aa * bb - ab * ab;
  const contention = (ay * bb - by * ab) / determinant;
  const coherency = (by * aa - ay * ab) / determinant;
  return `contention ${contention.toFixed(4)}, coherency ${coherency.toFixed(6)}`;
}

async function destinationsTable(): Promise<string> {
  progress('destinations');
  const file = new URL('./scale-destinations.ts', import.meta.url).pathname;
  const flags = ['--expose-gc', '--max-old-space-size=8192'];
  const found = await linesOf<DestinationFigures>([...flags, file, JSON.stringify(destinationCounts)]);
  const rows = found.map((one) => [
    one.destinations,
    one.bytes.toFixed(0),
    ((one.bytes * one.destinations) / 2 ** 20).toFixed(0),
    one.claimMs.toFixed(2),
    one.blockedClaimMs.toFixed(2),
    one.pollMs.toFixed(1),
    `${one.statesSaved.waiting}, ${one.statesSaved.dead}`,
  ]);
  const head = [
    'destinations with due mail',
    'bytes each',
    'MB',
    'ms a claim',
    'ms if all are blocked',
    'ms a second of polls',
    'states written a minute: waiting, dead',
  ];
  return tableOf(head, rows);
}

async function deadTable(costs: Costs): Promise<string> {
  progress('destinations that do not answer');
  const seconds = 600;
  const layouts = deadCounts.map(
    (destinations): Layout => ({ ...apart, nodes: 1, destinations, hostMs: null, callers: 0, seconds }),
  );
  const models = await runModels(costs, layouts);
  const rows = models.map(({ attempts, statements, transactions, statesWritten }, index) =>
    [
      deadCounts[index]!,
      ...[attempts, statements, transactions, statesWritten].map((count) => (count * 60) / seconds),
    ].map((value) => Math.round(value)),
  );
  return tableOf(
    ['destinations that do not answer', 'attempts a minute', 'statements', 'transactions', 'states written'],
    rows,
  );
}

const rounded = (_: string, value: unknown) =>
  typeof value === 'number' ? Number(value.toPrecision(3)) : value;

function runModels(costs: Costs, layouts: Layout[]): Promise<Figures[]> {
  const file = new URL('./scale-run.ts', import.meta.url).pathname;
  return linesOf<Figures>([file, JSON.stringify({ costs, layouts })]);
}

async function linesOf<Line>(args: string[]): Promise<Line[]> {
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'close')]);
  if (code !== 0) throw new Error(`${args[0]} ended with ${code}`);
  return output
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}
