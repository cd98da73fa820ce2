/**
 * `npm run bench -- --cost`: the CPU time of a mail in its first thousands after a start (cold), after many (warm), and at 200
 * and 20 a second, in units of an RSA-2048 signature that is measured in the same run: machines differ by a factor of two, that
 * unit does not. Beside it the bare path (bare-path.ts).
 *
 * `--against REV` measures cold and warm in pairs with another commit's tree, which take turns to be first, and says in how many
 * pairs this tree is cheaper.
 */
import { generateKeyPairSync, sign } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { median, progress } from '#lab/load/figures.ts';
import type { Loader } from '#lab/load/loader.ts';
import { cpuSeconds, peakMb } from '#lab/load/processes.ts';
import type { Stage } from '#lab/load/stage.ts';
import { type SmtpSink, startSmtpSink } from '#lab/mx/smtp-sink.ts';
import { until } from '#lab/until.ts';
import { startBarePath } from './bare-path.ts';
import { bodyOf, type Case, hostsOf, recipientsOf } from './bench-cases.ts';
import { type Garbage, garbageIn, traceGarbage } from './garbage.ts';
import { checkOut, startTree, thisTree } from './tree.ts';

export interface CostPlan {
  work: Case;
  loader: Loader;
}

/** CPU milliseconds a mail, by figure. */
type Figures = Record<string, number>;

export interface Cost {
  /** CPU milliseconds of a signature. */
  unit: number;
  figures: Figures;
  peakMb: number;
  /** Of the main thread, for each of the warm mails; the full collections are those of all of them. */
  garbage: Garbage;
}

const coldMails = 3000;
const warmUpMails = 6000;
const warmMails = 4000;
const parallel = 32;
const rates = [200, 20];
const secondsAtRate = 6;

export async function measureCost(stage: Stage, { work, loader }: CostPlan): Promise<Cost> {
  const cost = await measureTree(stage, { work, loader }, { tree: thisTree, withRates: true });
  const bare = await stage.nested(async (scene) => {
    const sink = await sinkOf(scene, work);
    const target = { ...(await startBarePath(scene, { host: sink.hosts[0]!, port: sink.port })), key: '-' };
    await send(target, { work, loader, sink }, { mails: coldMails, label: 'before' });
    return send(target, { work, loader, sink }, { mails: warmMails, label: 'bare' });
  });
  return { ...cost, figures: { ...cost.figures, 'bare path': bare } };
}

export interface Pair {
  here: Cost;
  there: Cost;
}

export async function measurePairs(
  stage: Stage,
  plan: CostPlan,
  { revision, pairs }: { revision: string; pairs: number },
): Promise<Pair[]> {
  const trees = { here: thisTree, there: await checkOut(stage, revision) };
  const done: Pair[] = [];
  for (let number = 0; number <= pairs; number += 1) {
    const measured: Partial<Pair> = {};
    for (const side of number % 2 === 0 ? (['here', 'there'] as const) : (['there', 'here'] as const))
      measured[side] = await measureTree(stage, plan, { tree: trees[side], withRates: false });
    // The first pair fills the compile caches.
    if (number === 0) continue;
    done.push(measured as Pair);
    progress(
      `pair ${number}: ${Object.entries(ratios(done.at(-1)!))
        .map(([name, ratio]) => `${name} ${ratio.toFixed(2)}`)
        .join(', ')}`,
    );
  }
  return done;
}

interface TreeTerms {
  tree: string;
  withRates: boolean;
}

export function measureTree(stage: Stage, plan: CostPlan, { tree, withRates }: TreeTerms): Promise<Cost> {
  return stage.nested(async (scene) => {
    const unit = signatureMs();
    const sink = await sinkOf(scene, plan.work);
    const target = await startTree(scene, tree, sink, { nodeFlags: [traceGarbage] });
    const garbage = () => garbageIn(readFileSync(join(scene.directory, 'postern.log'), 'utf8'));
    const all = { ...plan, sink };
    const figures: Figures = { cold: await send(target, all, { mails: coldMails, label: 'cold' }) };
    await send(target, all, { mails: warmUpMails, label: 'between' });
    const before = garbage();
    figures.warm = await send(target, all, { mails: warmMails, label: 'warm' });
    const after = garbage();
    for (const rate of withRates ? rates : [])
      figures[`${rate} a second`] = await send(target, all, {
        mails: rate * secondsAtRate,
        label: `at${rate}`,
        rate,
      });
    return {
      unit: median([unit, signatureMs()]),
      figures,
      peakMb: peakMb([target.pid]),
      garbage: {
        kilobytes: (after.kilobytes - before.kilobytes) / warmMails,
        full: after.full - before.full,
      },
    };
  });
}

const sinkOf = (stage: Stage, work: Case) =>
  stage.start(startSmtpSink(stage.directory, hostsOf(work)), (it) => it.stop());

interface Target {
  url: string;
  key: string;
  pid: number;
  recorded?(count: number): Promise<void>;
}

/** CPU milliseconds a mail, until the last outcome is recorded. */
async function send(
  target: Target,
  { work, loader, sink }: CostPlan & { sink: SmtpSink },
  { mails, label, rate = null }: { mails: number; label: string; rate?: number | null },
): Promise<number> {
  const { url, key, pid } = target;
  const before = await sink.count();
  const spent = cpuSeconds([pid]);
  const to = recipientsOf(work, mails, label);
  await loader.run({ url, key, body: bodyOf(work), to, parallel, rate, batch: 1 });
  await until(async () => (await sink.count()) >= before + mails, { timeout: 60_000 });
  await target.recorded?.(before + mails);
  return ((cpuSeconds([pid]) - spent) / mails) * 1000;
}

const signatures = 400;

function signatureMs(): number {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const digest = Buffer.alloc(64);
  const rounds = Array.from({ length: 5 }, () => {
    const begun = process.threadCpuUsage();
    for (let count = 0; count < signatures; count += 1) sign('sha256', digest, privateKey);
    const { user, system } = process.threadCpuUsage(begun);
    return (user + system) / 1000 / signatures;
  });
  return median(rounds);
}

/** This tree's cost by the other one's, each in its own unit. */
function ratios({ here, there }: Pair): Figures {
  return Object.fromEntries(
    Object.entries(here.figures).map(([name, ms]) => [
      name,
      ms / here.unit / (there.figures[name]! / there.unit),
    ]),
  );
}

export function costTable({ unit, figures, peakMb: peak, garbage }: Cost): string {
  const lines = Object.entries(figures).map(
    ([name, ms]) =>
      `${name.padEnd(14)}${ms.toFixed(2).padStart(8)} ms${(ms / unit).toFixed(1).padStart(8)} signatures`,
  );
  return [
    `CPU time of a mail (a signature: ${(unit * 1000).toFixed(0)} us; peak memory ${peak} MB)`,
    ...lines,
    `Garbage of a warm mail on the main thread: ${garbage.kilobytes.toFixed(0)} KB; ${garbage.full} full collections in ${warmMails} mails`,
  ].join('\n');
}

/** Fewer pairs than this can be chance. */
const enoughPairs = 8;

export function pairsTable(pairs: Pair[], revision: string): string {
  const names = Object.keys(pairs[0]!.here.figures);
  const lines = names.map((name) => {
    const all = pairs.map((pair) => ratios(pair)[name]!);
    const cheaper = all.filter((ratio) => ratio < 1).length;
    const ms = (side: keyof Pair) => median(pairs.map((pair) => pair[side].figures[name]!)).toFixed(2);
    return `${name.padEnd(8)}${ms('there').padStart(8)} ms → ${ms('here')} ms, ${median(all).toFixed(2)} times; cheaper in ${cheaper} of ${all.length} pairs`;
  });
  const memory = (side: keyof Pair) => {
    const of = (read: (cost: Cost) => number) => median(pairs.map((pair) => read(pair[side])));
    return `${of(({ peakMb: peak }) => peak)} MB, ${of(({ garbage }) => garbage.kilobytes).toFixed(0)} KB, ${of(({ garbage }) => garbage.full)}`;
  };
  lines.push(
    `Peak memory, garbage of a warm mail on the main thread, full collections: ${memory('there')} → ${memory('here')}`,
  );
  const hint = pairs.length < enoughPairs ? [`Fewer than ${enoughPairs} pairs: this is a hint only.`] : [];
  return [`CPU time of a mail, against ${revision}`, ...lines, ...hint].join('\n');
}
