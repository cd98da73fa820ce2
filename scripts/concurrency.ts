/**
 * `node scripts/concurrency.ts`: sends many mails to one destination and measures how many connections they take, how often
 * each connection is used, and how Postern reacts if the destination wants fewer.
 *
 *   --mails 2000         to one destination
 *   --limit 3            connections that the MX host of the second run accepts at once
 *   --delay 20           milliseconds that it takes for each message
 *   --tls                the MX host offers STARTTLS
 *   --patience 300       seconds to wait for all mails
 *   --set NAME=VALUE     a Postern setting; may be repeated
 *   --json               print all results as JSON
 *
 * Two runs, each with its own Postern process and MX process (test/lab/mx/sink.ts). In the first run the host accepts everything:
 * all mails must arrive over at most POSTERN_MTA_PER_DESTINATION simultaneous connections, with ten or more mails per
 * connection on average. In the second run it greets each connection over the limit with `421 4.7.0 too many connections`:
 * all mails must arrive, and while the second half of them arrived, the median number of open connections must have been the
 * limit or one less.
 *
 * Exits 0 if both are so, 1 if not. Leaves nothing behind, not even after Ctrl-C.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import Table from 'cli-table3';
import { startDns } from '../test/lab/dns/dns.ts';
import { bars, median, progress } from '../test/lab/load/figures.ts';
import { recipients, sendAll } from '../test/lab/load/load.ts';
import { perform, readOptions, type Stage, settingsOf } from '../test/lab/load/stage.ts';
import { type Connection, startSink } from '../test/lab/mx/sink.ts';
import { launchPostern, type Postern } from '../test/lab/scenes/postern.ts';
import { until } from '../test/lab/until.ts';

const given = readOptions('node scripts/concurrency.ts [--mails N] [--limit N] [--tls] … (see its header)', {
  mails: { type: 'string', default: '2000' },
  limit: { type: 'string', default: '3' },
  delay: { type: 'string', default: '20' },
  tls: { type: 'boolean', default: false },
  patience: { type: 'string', default: '300' },
  set: { type: 'string', multiple: true, default: [] },
  json: { type: 'boolean', default: false },
});
const settings = settingsOf(given.set);
const mails = Number(given.mails);
const limit = Number(given.limit);
const perDestination = Number(settings.POSTERN_MTA_PER_DESTINATION ?? 20);
const host = '127.0.0.2';

interface Run {
  limit: number | null;
  delivered: number;
  /** Mails that arrived more than once. */
  duplicates: number;
  acceptedPerSecond: number;
  /** From the first connection to the last mail. */
  seconds: number;
  mailsPerSecond: number;
  connections: number;
  mailsPerConnection: number;
  maxOpen: number;
  /** Median of the open connections at the arrival of each mail of the second half. */
  settled: number;
  refused: number;
  attempts: number;
  rssMb: number;
  /** Open and refused connections in each of the equal parts of the time. */
  timeline: { open: number[]; refused: number[] };
}

async function run(stage: Stage, max: number | null): Promise<Run> {
  const exchanger = { host, tls: given.tls, delayMs: Number(given.delay), ...(max && { limit: max }) };
  const sink = await stage.start(startSink([exchanger]), (it) => it.stop());
  const zone = { 'there.invalid': { MX: ['10 mx.invalid'] }, 'mx.invalid': { A: [host] } };
  const dns = await stage.start(startDns(zone), (it) => it.close());
  const postern = await launchPostern(stage, { dns, mtaPort: sink.port, settings });
  const begun = performance.now();
  await sendAll({
    ...postern,
    interrupted: stage.interrupted,
    to: recipients('there.invalid', mails, 'mail'),
  });
  const acceptedPerSecond = Math.round((mails / (performance.now() - begun)) * 1000);
  progress(
    `${mails} mails accepted, ${acceptedPerSecond} a second; ${await sink.count(host)} are in already`,
  );
  await patiently(postern, begun + Number(given.patience) * 1000);
  const attempts = Number((await postern.db('deliveries').sum('attempts as n').first())?.n);
  const rssMb = await postern.rssMb();
  const { taken, connections } = await sink.books();
  const arrived = new Set(taken.map(({ to }) => to));
  const first = Math.min(...connections.map(({ openedAt }) => openedAt));
  const last = Math.max(...taken.map(({ at }) => at));
  const used = connections.filter(({ mails: count }) => count > 0);
  return {
    limit: max,
    delivered: arrived.size,
    duplicates: taken.length - arrived.size,
    acceptedPerSecond,
    seconds: (last - first) / 1000,
    mailsPerSecond: Math.round((taken.length / (last - first)) * 1000),
    connections: used.length,
    mailsPerConnection: taken.length / used.length,
    maxOpen: maxOpen(connections),
    settled: median(taken.slice(taken.length / 2).map(({ at }) => connections.filter(isOpenAt(at)).length)),
    refused: connections.filter(({ isRefused }) => isRefused).length,
    attempts,
    rssMb,
    timeline: {
      open: sample(connections, first, last, columns),
      refused: refusedIn(connections, first, last),
    },
  };
}

/** Waits until Postern reports all mails as delivered; prints the progress every few seconds. */
async function patiently({ db }: Postern, end: number): Promise<void> {
  const delivered = async () => {
    const row = await db('deliveries').where({ status: 'delivered' }).count('* as n').first();
    return Number(row?.n);
  };
  while ((await delivered()) < mails && performance.now() < end) {
    await until(async () => (await delivered()) === mails, { timeout: 5000 }).catch(async () => {
      progress(`${await delivered()} of ${mails} delivered`);
    });
  }
  // Results that the sessions still have to report.
  await sleep(100);
}

const columns = 72;

const isOpenAt = (at: number) => (one: Connection) =>
  !one.isRefused && one.openedAt <= at && (one.closedAt ?? Number.POSITIVE_INFINITY) > at;

function sample(connections: Connection[], from: number, to: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => {
    const at = from + ((to - from) * (index + 0.5)) / count;
    return connections.filter(isOpenAt(at)).length;
  });
}

/** The number is largest right after a connection was opened. */
function maxOpen(connections: Connection[]): number {
  return Math.max(...connections.map(({ openedAt }) => connections.filter(isOpenAt(openedAt)).length));
}

function refusedIn(connections: Connection[], from: number, to: number): number[] {
  const counts = new Array<number>(columns).fill(0);
  for (const { isRefused, openedAt } of connections) {
    const column = Math.min(Math.floor(((openedAt - from) / (to - from)) * columns), columns - 1);
    if (isRefused && counts[column] !== undefined) counts[column] += 1;
  }
  return counts;
}

function faultsOf(one: Run): string[] {
  const run = one.limit ? `at most ${one.limit}` : 'no limit';
  const checks: [boolean, string][] = [
    [one.delivered === mails, `${one.delivered} of ${mails} mails arrived within ${given.patience} s`],
    [one.duplicates === 0, `${one.duplicates} mails arrived twice`],
    [one.maxOpen <= perDestination, `${one.maxOpen} connections at once, ${perDestination} are allowed`],
    [one.mailsPerConnection >= 10, `${one.mailsPerConnection.toFixed(1)} mails a connection`],
    [!one.limit || one.settled >= one.limit - 1, `settled at ${one.settled} open connections`],
  ];
  return checks.filter(([holds]) => !holds).map(([, fault]) => `${run}: ${fault}`);
}

function print(runs: Run[]): void {
  const rows: [string, (one: Run) => string | number][] = [
    ['mails that arrived', (one) => one.delivered],
    ['twice', (one) => one.duplicates],
    ['accepted by the API', (one) => `${one.acceptedPerSecond}/s`],
    ['time', (one) => `${one.seconds.toFixed(1)} s`],
    ['rate', (one) => `${one.mailsPerSecond}/s`],
    ['connections used', (one) => one.connections],
    ['mails a connection', (one) => one.mailsPerConnection.toFixed(1)],
    ['open at once, at most', (one) => one.maxOpen],
    ['open at once, settled', (one) => one.settled],
    ['421 at the greeting', (one) => one.refused],
    ['attempts', (one) => one.attempts],
    ['RSS', (one) => `${one.rssMb} MB`],
  ];
  const named = runs.map((one) => ({ ...one, name: one.limit ? `421 beyond ${one.limit}` : 'no limit' }));
  const table = new Table({ head: ['', ...named.map(({ name }) => name)], style: { head: [], border: [] } });
  table.push(...rows.map(([what, cell]) => [what, ...runs.map(cell)]));
  console.log(table.toString());
  for (const { name, seconds, timeline } of named) {
    console.log(`\n${name}, ${seconds.toFixed(1)} s from left to right`);
    for (const [what, values] of Object.entries(timeline)) {
      const top = Math.max(...values);
      console.log(`${what.padStart(8)} ${bars(values)} ${top > 0 ? `█ is ${top}` : 'none'}`);
    }
  }
}

const runs: Run[] = [];
const faults = await perform('concurrency', async (stage) => {
  for (const max of [null, limit]) {
    progress(max ? `421 beyond ${max} connections` : 'no limit');
    runs.push(await stage.scene((scene) => run(scene, max)));
  }
  return runs.flatMap(faultsOf);
});
if (given.json) console.log(JSON.stringify({ runs, faults }, null, 2));
else {
  print(runs);
  console.log(faults.length === 0 ? '\nIt holds.' : `\nIt does not hold:\n  ${faults.join('\n  ')}`);
}
process.exit(faults.length === 0 ? 0 : 1);
