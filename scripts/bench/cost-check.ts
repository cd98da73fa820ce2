/**
 * `npm run bench -- --cost --check`, which ends the slow tests: fails if a mail costs more than 15 % above the units that
 * cost-units.json records. A commit that makes mails dearer or cheaper on purpose changes that file and says why.
 *
 * The median of several short runs is judged, each in signatures that are measured beside it, so that the speed of the machine
 * does not matter. Other work on the machine makes mails and signatures dearer, but not alike: if the signatures differ too much
 * from run to run, or others use the processors, a high cost proves nothing; the check says so and passes.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { median, progress } from '#lab/load/figures.ts';
import { busySeconds, cpuSeconds } from '#lab/load/processes.ts';
import type { Stage } from '#lab/load/stage.ts';
import { type CostPlan, measureTree } from './cost.ts';
import { thisTree } from './tree.ts';

interface Recorded extends Units {
  /** CPU milliseconds of a signature on the machine of the record. */
  signature: number;
}

/** Signatures a mail. */
interface Units {
  cold: number;
  warm: number;
}

interface Run extends Units {
  /** CPU milliseconds of a signature. */
  unit: number;
  /** Processors that others used, on average. */
  others: number;
}

const allowed = 1.15;
const minRuns = 3;
const maxRuns = 7;
/** Between the dearest signature of the runs and the cheapest. */
const maxSpread = 1.1;
const maxOthers = 0.25;
/** A processor that signs much faster or slower than that of the record does other things not as much faster or slower. */
const maxFromRecord = 1.2;

/** Returns the faults. */
export async function checkCost(stage: Stage, plan: CostPlan): Promise<string[]> {
  const recorded: Recorded = JSON.parse(readFileSync(join(import.meta.dirname, 'cost-units.json'), 'utf8'));
  // It fills the compile cache.
  await runOnce(stage, plan);
  const runs: Run[] = [];
  for (;;) {
    runs.push(await runOnce(stage, plan));
    const { cold, warm, unit, others } = runs.at(-1)!;
    progress(
      `run ${runs.length}: cold ${cold.toFixed(2)}, warm ${warm.toFixed(2)} signatures of ${(unit * 1000).toFixed(0)} us; others used ${others.toFixed(1)} processors`,
    );
    if (runs.length < minRuns) continue;
    const faults = faultsOf(runs, recorded);
    if (faults.length === 0) return [];
    if (runs.length < maxRuns) continue;
    const doubt = doubtOf(runs, recorded);
    if (doubt === null) return faults;
    console.log(`The cost of a mail is not known, because ${doubt}. It seemed too high: ${faults.join(' ')}`);
    return [];
  }
}

async function runOnce(stage: Stage, plan: CostPlan): Promise<Run> {
  const begun = { busy: busySeconds(), own: cpuSeconds([process.pid]), at: performance.now() };
  const { unit, figures } = await measureTree(stage, plan, { tree: thisTree, withRates: false });
  const own = cpuSeconds([process.pid]) - begun.own;
  const others = (busySeconds() - begun.busy - own) / ((performance.now() - begun.at) / 1000);
  return { cold: figures.cold! / unit, warm: figures.warm! / unit, unit, others };
}

function faultsOf(runs: Run[], recorded: Units): string[] {
  return (['cold', 'warm'] as const).flatMap((kind) => {
    const cost = median(runs.map((run) => run[kind]));
    return cost <= recorded[kind] * allowed
      ? []
      : [
          `A ${kind} mail costs ${cost.toFixed(2)} signatures; scripts/bench/cost-units.json records ${recorded[kind]}.`,
        ];
  });
}

/** Why a high cost may not be the program's; null: nothing speaks for that. */
function doubtOf(runs: Run[], recorded: Recorded): string | null {
  const units = runs.map(({ unit }) => unit);
  const spread = Math.max(...units) / Math.min(...units);
  if (spread > maxSpread) return `a signature took up to ${spread.toFixed(2)} times as long as at best`;
  const fromRecord = median(units) / recorded.signature;
  if (fromRecord > maxFromRecord || fromRecord < 1 / maxFromRecord)
    return `a signature takes ${fromRecord.toFixed(2)} times as long as on the machine of the record`;
  const others = median(runs.map((run) => run.others));
  return others > maxOthers ? `others used ${others.toFixed(1)} processors` : null;
}
