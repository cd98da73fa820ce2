/**
 * What a server costs that has nothing to do: a minute after it has delivered some mail and has been left alone for a while.
 * Postern and, for a comparison, Postfix are idle at the same time. Disk syncs are counted in a second run, under strace,
 * because strace wakes up what it traces.
 *
 * BUGS: of Postfix, the syncs of processes that run when strace attaches, and of OpenDKIM, are not counted, nor the wake-ups of
 * processes that end within the minute.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import Table from 'cli-table3';
import { progress } from '#lab/load/figures.ts';
import { cpuSeconds, peakMb, wakeUps, wakeUpsBetween } from '#lab/load/processes.ts';
import type { Stage } from '#lab/load/stage.ts';
import { startTracer, syncsIn } from '#lab/load/syncs.ts';
import { startRelay } from '#lab/programs/postfix-relay.ts';
import { isInstalled } from '#lab/programs/programs.ts';
import { type Plan, setUp, workOf } from './bench-measure.ts';
import { runPostern, runRelay } from './bench-run.ts';

const mails = 1000;
/** The check of a new domain and the last use of a key are recorded a minute later. */
const settleMs = 75_000;
const idleMs = 60_000;

/** Figures for the minute. */
export interface Idle {
  program: string;
  cpuSeconds: number;
  wakeUps: number;
  peakMb: number;
  /** Null if not counted. */
  syncs: number | null;
}

export async function measureIdle(stage: Stage, plan: Plan): Promise<Idle[]> {
  const quiet = await stage.nested((scene) => measureQuiet(scene, plan));
  if (!isInstalled('strace')) return quiet;
  const syncs = await stage.nested((scene) => countIdleSyncs(scene, plan));
  return quiet.map((one, index) => ({ ...one, syncs: syncs[index]! }));
}

async function measureQuiet(stage: Stage, plan: Plan): Promise<Idle[]> {
  const bench = await setUp(stage, plan);
  const work = { ...workOf(plan, stage), mails };
  await runPostern(bench, work, 'before');
  const programs = [{ program: 'Postern', pids: [bench.postern.pid] }];
  if (plan.vsPostfix) {
    const relay = await startRelay(stage, bench.sink);
    await runRelay(relay, bench.sink, work);
    programs.push({ program: 'Postfix + OpenDKIM', pids: relay.pids });
  }
  const figures = () => programs.map(({ pids }) => ({ cpu: cpuSeconds(pids), woken: wakeUps(pids) }));
  const [before, after] = await aroundMinute(stage, 'idle', figures);
  return programs.map(({ program, pids }, index) => ({
    program,
    cpuSeconds: after[index]!.cpu - before[index]!.cpu,
    wakeUps: wakeUpsBetween(before[index]!.woken, after[index]!.woken),
    peakMb: peakMb(pids),
    syncs: null,
  }));
}

async function countIdleSyncs(stage: Stage, plan: Plan): Promise<number[]> {
  const traces = [join(stage.directory, 'postern.trace')];
  const bench = await setUp(stage, plan, { traceTo: traces[0]! });
  const work = { ...workOf(plan, stage), mails };
  await runPostern(bench, work, 'before');
  if (plan.vsPostfix) {
    const relay = await startRelay(stage, bench.sink);
    traces.push(join(stage.directory, 'postfix.trace'));
    await stage.start(startTracer(relay.pids[0]!, traces[1]!), (it) => it.stop());
    await runRelay(relay, bench.sink, work);
  }
  const [before, after] = await aroundMinute(stage, 'idle, counting disk syncs', () => traces.map(syncsIn));
  return after.map((count, index) => count - before[index]!);
}

/** Reads the figures once all has settled, and a minute later. */
async function aroundMinute<T>({ interrupted }: Stage, what: string, read: () => T): Promise<[T, T]> {
  progress(`${what}: ${(settleMs + idleMs) / 1000} s`);
  await sleep(settleMs, undefined, { signal: interrupted });
  const before = read();
  await sleep(idleMs, undefined, { signal: interrupted });
  return [before, read()];
}

export function idleTable(programs: Idle[]): string {
  const head = ['idle for a minute', 'CPU, % of a core', 'disk syncs', 'wake-ups/s', 'peak MB'];
  const table = new Table({ head, style: { head: [], border: [], compact: true } });
  const seconds = idleMs / 1000;
  for (const { program, cpuSeconds, syncs, wakeUps, peakMb } of programs) {
    const share = ((cpuSeconds / seconds) * 100).toFixed(2);
    table.push([program, share, syncs ?? '-', (wakeUps / seconds).toFixed(1), peakMb]);
  }
  return table.toString();
}
