/**
 * What the bench can do with a case: measure it in rounds, count its disk syncs, profile it, and measure its steps alone.
 * Each has its own stage with a sink, a Postern and, for a comparison, a Postfix.
 */
import { join } from 'node:path';
import { readProfiles } from '#lab/load/cpu-profile.ts';
import { progress } from '#lab/load/figures.ts';
import type { Loader } from '#lab/load/loader.ts';
import { peakMb, threadSeconds } from '#lab/load/processes.ts';
import type { Stage } from '#lab/load/stage.ts';
import { conditionsOf, startTracer, syncsIn } from '#lab/load/syncs.ts';
import { type SmtpSink, startSmtpSink } from '#lab/mx/smtp-sink.ts';
import { startRelay } from '#lab/programs/postfix-relay.ts';
import { type MeasuredOptions, startMeasured } from '#lab/scenes/measured-postern.ts';
import { type Case, hostsOf } from './bench-cases.ts';
import type { CaseResult, Profiled, Side } from './bench-report.ts';
import { type Bench, type PosternRound, type Round, runPostern, runRelay, type Work } from './bench-run.ts';
import { measureFloor, type Step } from './floor.ts';

export interface Plan {
  work: Case;
  loader: Loader;
  rounds: number;
  mails: number;
  parallel: number;
  /** Calls per second; null for full speed. */
  rate: number | null;
  /** Also sends the same work through Postfix, in turns. */
  vsPostfix: boolean;
  /** Postern settings. */
  settings: Record<string, string>;
}

export async function measureCase(stage: Stage, plan: Plan): Promise<CaseResult> {
  const { name } = plan.work;
  const bench = await setUp(stage, plan);
  const relay = plan.vsPostfix ? await startRelay(stage, bench.sink) : null;
  progress(
    `${name}: ${await bench.postern.durability()}; ${conditionsOf(stage.directory)}; sink: ${bench.sink.kind}`,
  );
  const work = workOf(plan, stage);
  await runPostern(bench, warmUp(work), 'warm');
  if (relay) await runRelay(relay, bench.sink, work);
  const ours: PosternRound[] = [];
  const theirs: Round[] = [];
  for (let round = 1; round <= plan.rounds; round++) {
    ours.push(await runPostern(bench, work, `round${round}`));
    progress(`${name}, round ${round}: Postern ${told(ours.at(-1)!)}`);
    if (!relay) continue;
    theirs.push(await runRelay(relay, bench.sink, work));
    progress(`${name}, round ${round}: Postfix + OpenDKIM ${told(theirs.at(-1)!)}`);
  }
  const side = <Kind extends Round>(list: Kind[], pids: number[]): Side<Kind> => ({
    rounds: list,
    peakMb: peakMb(pids),
    syncsPerMail: null,
  });
  return {
    name,
    mails: plan.mails,
    postern: side(ours, [bench.postern.pid]),
    postfix: relay && side(theirs, relay.pids),
  };
}

/** Disk syncs per mail, each side under strace. */
export async function countSyncs(stage: Stage, plan: Plan) {
  progress(`${plan.work.name}: counting disk syncs`);
  const mails = Math.min(plan.mails, 1000);
  const work = { ...workOf(plan, stage), mails };
  const [ourTrace, theirTrace] = ['postern', 'postfix'].map((name) => join(stage.directory, `${name}.trace`));
  const bench = await setUp(stage, plan, { traceTo: ourTrace! });
  const before = syncsIn(ourTrace!);
  await runPostern(bench, work, 'traced');
  const postern = (syncsIn(ourTrace!) - before) / mails;
  if (!plan.vsPostfix) return { postern, postfix: null };
  const relay = await startRelay(stage, bench.sink);
  await stage.start(startTracer(relay.pids[0]!, theirTrace!), (it) => it.stop());
  await runRelay(relay, bench.sink, work);
  return { postern, postfix: syncsIn(theirTrace!) / mails };
}

export async function profileCase(stage: Stage, plan: Plan): Promise<Profiled> {
  progress(`${plan.work.name}: profiling`);
  const directory = join(stage.directory, 'profile');
  const bench = await setUp(stage, plan, { nodeFlags: ['--cpu-prof', `--cpu-prof-dir=${directory}`] });
  const { pid, end } = bench.postern;
  const work = workOf(plan, stage);
  await runPostern(bench, warmUp(work), 'warm');
  const begun = process.hrtime.bigint();
  const before = threadSeconds(pid);
  await runPostern(bench, work, 'profiled');
  const after = threadSeconds(pid);
  await end();
  const spent = [...after].map(
    ([name, seconds]) => [name, ((seconds - (before.get(name) ?? 0)) / plan.mails) * 1000] as const,
  );
  return { ...(await readProfiles(directory, begun)), threads: Object.fromEntries(spent) };
}

export async function floorOf(stage: Stage, { work }: Plan): Promise<Step[]> {
  progress(`${work.name}: the steps one by one`);
  const { directory, interrupted } = stage;
  const [host] = hostsOf(work);
  const { port } = await stage.start(startSmtpSink(directory, [host!]), (it) => it.stop());
  return measureFloor({ work, mails: 1000, sink: { host: host!, port }, directory }, interrupted);
}

/** The hosts that all mail goes to. */
export function setUpSink(stage: Stage, { work }: Plan): Promise<SmtpSink> {
  return stage.start(startSmtpSink(stage.directory, hostsOf(work)), (it) => it.stop());
}

export async function setUp(stage: Stage, plan: Plan, extras: Partial<MeasuredOptions> = {}): Promise<Bench> {
  const { loader, settings } = plan;
  const sink = await setUpSink(stage, plan);
  const postern = await startMeasured(stage, sink, { settings, ...extras });
  return { sink, postern, loader };
}

export function workOf({ work, mails, parallel, rate }: Plan, { interrupted }: Stage): Work {
  return { work, mails, parallel, rate, interrupted };
}

/**
 * V8 recompiles code that runs often, on threads that are counted too. After 12,000 mails that is 0.08 CPU seconds per
 * thousand; after this many mails it is 0.04 and falling.
 */
function warmUp(work: Work): Work {
  return { ...work, rate: null, mails: Math.max(work.mails, fewestToWarm) };
}

const fewestToWarm = 30_000;

export function told({ deliveredPerSecond, cpuPerThousand, others }: Round): string {
  const beside = `${others.toFixed(1)} processors busy with other things`;
  return `${deliveredPerSecond.toFixed(0)}/s, ${cpuPerThousand.toFixed(2)} CPU s/1000, ${beside}`;
}
