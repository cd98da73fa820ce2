/**
 * `node scripts/postgres-away.ts`: kills, stops, freezes and slows PostgreSQL under load, with several Posterns on it. Each
 * must accept mail again by itself within a minute. Nothing may be lost, sent twice without a flag, or kept of a send that was
 * answered 500. Exits 0 if all of that holds, 1 if not.
 *
 *   --nodes 2 --senders 6     number of Posterns; concurrent calls to each
 *   --rounds 8 --longest 60   number of disturbances, each kind in turn; maximum seconds of one
 *   --patience 300            seconds until the queue must be empty in the end
 *   --set NAME=VALUE, --json  a Postern setting, may be repeated; print all results as JSON
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { conclude } from '#lab/load/conclude.ts';
import { progress, tableOf } from '#lab/load/figures.ts';
import { type Answers, sendUntilStopped } from '#lab/load/load.ts';
import { type Audit, auditRows, faultsOf } from '#lab/load/reconciliation.ts';
import { readOptions, runScript, type Stage, settingsOf } from '#lab/load/stage.ts';
import { type Cluster, startCluster, type Tenant } from '#lab/scenes/cluster.ts';
import { until } from '#lab/until.ts';

const args = readOptions('node scripts/postgres-away.ts [--nodes N] [--rounds N] … (see its header)', {
  nodes: { type: 'string', default: '2' },
  rounds: { type: 'string', default: '8' },
  longest: { type: 'string', default: '60' },
  senders: { type: 'string', default: '6' },
  patience: { type: 'string', default: '300' },
  set: { type: 'string', multiple: true, default: [] },
  json: { type: 'boolean', default: false },
});
const longestMs = 1000 * Number(args.longest);
/** Minimum time between two disturbances. */
const upMs = 5000;

type Disturbance = 'killed' | 'stopped' | 'frozen' | 'slow';
const kinds: Disturbance[] = ['killed', 'stopped', 'frozen', 'slow'];

/** One disturbance; times in milliseconds. */
interface Time {
  kind: Disturbance;
  awayMs: number;
  /** From PostgreSQL's return until the last node answered 200 to a call that was made after the return. */
  backMs: number;
}

interface Run extends Audit {
  times: Time[];
  /** Number of responses by status and code. */
  answers: Record<string, number>;
  /** Answered 500 and nevertheless kept. */
  keptOf500: number;
  drainSeconds: number;
}

/** The load on one node, and its results. */
interface Load {
  answers: Answers;
  /** Number of responses by status and code. */
  counts: Map<string, number>;
  count(status: number): number;
  done: Promise<void>;
}

async function run(stage: Stage): Promise<Run> {
  const cluster = await startCluster(stage, settingsOf(args.set));
  const tenant = await cluster.addTenant();
  const over = new AbortController();
  const loads: Load[] = [];
  for (let index = 0; index < Number(args.nodes); index++) {
    const { url } = await cluster.launch(`node${index}`);
    loads.push(load(`n${index}`, url, tenant, over.signal));
  }
  const times: Time[] = [];
  for (const [round, kind] of plan(Number(args.rounds)).entries()) {
    await recovered(loads);
    await sleep(upMs * (1 + Math.random()), null, { signal: stage.interrupted });
    const isFirst = !times.some((time) => time.kind === kind);
    times.push(await away(cluster, kind, awayFor(kind, isFirst), loads));
    const { awayMs, backMs } = times.at(-1)!;
    progress(`${round + 1}: ${kind} for ${seconds(awayMs)}; all take mail again after ${seconds(backMs)}`);
  }
  over.abort();
  await Promise.all(loads.map(({ done }) => done));
  const begun = performance.now();
  await cluster.queueEmpty(Number(args.patience) * 1000);
  const drainSeconds = (performance.now() - begun) / 1000;
  const answered = (status: number) => loads.flatMap(({ answers }) => answers.get(status) ?? []);
  const kept = new Set<string>(await cluster.db('deliveries').pluck('recipient'));
  return {
    times,
    answers: sumOf(loads.map(({ counts }) => counts)),
    keptOf500: answered(500).filter((to) => kept.has(to)).length,
    drainSeconds,
    ...(await cluster.compare(answered(200))),
  };
}

/** Each kind equally often, in random order. */
function plan(rounds: number): Disturbance[] {
  return Array.from({ length: rounds }, (_, round) => kinds[round % kinds.length]!)
    .map((kind) => ({ kind, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ kind }) => kind);
}

function awayFor(kind: Disturbance, isFirst: boolean): number {
  if (kind === 'frozen' && isFirst) return longestMs;
  const max = kind === 'frozen' || kind === 'slow' ? longestMs : longestMs / 6;
  return Math.random() * max;
}

function load(name: string, url: string, { key }: Tenant, stopped: AbortSignal): Load {
  const answers: Answers = new Map();
  const counts = new Map<string, number>();
  const onAnswer = (status: number, text: string) => {
    const what = status === 200 ? '200' : `${status} ${codeIn(text)}`;
    counts.set(what, (counts.get(what) ?? 0) + 1);
  };
  const target = { name, url, key, parallel: Number(args.senders), stopped, onAnswer };
  const done = sendUntilStopped(target, answers);
  return { answers, counts, count: (status) => answers.get(status)?.length ?? 0, done };
}

function codeIn(text: string): string {
  try {
    return JSON.parse(text).error ?? text.slice(0, 100);
  } catch {
    return text.slice(0, 100);
  }
}

async function away({ postgres }: Cluster, kind: Disturbance, ms: number, loads: Load[]): Promise<Time> {
  const begun = performance.now();
  if (kind === 'killed' || kind === 'stopped') {
    await postgres.end(kind === 'killed' ? 'SIGKILL' : 'SIGINT');
    await sleep(ms);
    await postgres.start();
  } else if (kind === 'frozen') {
    postgres.freeze();
    await sleep(ms);
    postgres.thaw();
  } else {
    while (performance.now() - begun < ms) {
      postgres.freeze();
      await sleep(450);
      postgres.thaw();
      await sleep(50);
    }
  }
  const back = performance.now();
  await recovered(loads);
  return { kind, awayMs: back - begun, backMs: performance.now() - back };
}

/** Waits until each node has answered 200 more often than it has concurrent calls, so that one call was made after now. */
async function recovered(loads: Load[]): Promise<void> {
  const wanted = loads.map((one) => one.count(200) + Number(args.senders) + 1);
  await until(() => loads.every((one, index) => one.count(200) >= wanted[index]!), {
    timeout: 60_000,
    what: () =>
      `every node to take mail again; answers: ${JSON.stringify(sumOf(loads.map(({ counts }) => counts)))}`,
  });
}

function sumOf(all: Map<string, number>[]): Record<string, number> {
  const sum: Record<string, number> = {};
  for (const [what, count] of all.flatMap((one) => [...one])) sum[what] = (sum[what] ?? 0) + count;
  return sum;
}

const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;

function print(one: Run): void {
  const times = one.times.map(({ kind, awayMs, backMs }) => [kind, seconds(awayMs), seconds(backMs)]);
  console.log(tableOf(['PostgreSQL was', 'away for', 'all well after'], times));
  const rows = [
    ...Object.entries(one.answers).map(([what, count]) => [`answered ${what}`, count]),
    ['answered 500, and kept all the same', one.keptOf500],
    ...auditRows.map(([what, cell]) => [what, cell(one)]),
    ['until the queue was empty in the end', `${one.drainSeconds.toFixed(1)} s`],
  ];
  console.log(tableOf([], rows));
}

const allowed = ['200', '500 SEND_FAILED', '429 RATE_LIMIT_EXCEEDED'];

function faultsIn(one: Run): string[] {
  const strange = Object.keys(one.answers).filter((what) => !allowed.includes(what));
  const more = strange.map((what) => `${one.answers[what]} were answered ${what}`);
  if (one.keptOf500 > 0) more.push(`${one.keptOf500} were answered 500, and are kept all the same`);
  return [...faultsOf(one), ...more];
}

let result: Run | undefined;
const faults = await runScript('postgres-away', async (stage) => {
  result = await run(stage);
  return faultsIn(result);
});
conclude({
  faults,
  json: args.json && { run: result },
  print: () => result && print(result),
});
