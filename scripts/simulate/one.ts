/** Makes runs in this process, and prints what came of each: a line of figures, then a failure with its story. */

import { replaceBuiltins } from '#lab/simulation/machine/virtual-builtins.ts';
import type { PlanSize } from '#lab/simulation/plan.ts';
import { Random } from '#lab/simulation/random.ts';
import type { Simulated } from '#lab/simulation/simulate.ts';
import { argumentsOf, type RunOptions } from './options.ts';

/** The lines of a story that are printed; the last ones tell most. */
const maxStory = 60;

/** Runs the seeds one after the other, with a planted fault only until it is found. True: no promise was broken. */
export async function runHere(seeds: string[], options: RunOptions): Promise<boolean> {
  const nodes = Number(options.nodes ?? 1);
  const postgres = nodes > 1 ? await startPostgres() : null;
  replaceBuiltins();
  if (options.plant) (await import('#lab/simulation/planting.ts')).plant(options.plant);
  let broken = 0;
  for (const seed of seeds) {
    broken += Number(!(await runOne({ ...options, seed }, { nodes, postgres })));
    if (broken > 0 && options.plant) break;
  }
  return broken === 0;
}

async function runOne(options: RunOptions, parts: Pick<Simulated, 'nodes' | 'postgres'>): Promise<boolean> {
  const { simulate } = await import('#lab/simulation/simulate.ts');
  const begun = process.cpuUsage();
  const keep = options.keep === undefined ? null : new Set(options.keep.split(',').map(Number));
  let length = 0;
  const { failure, story, figures } = await simulate({
    seed: options.seed,
    size: sizeOf(options),
    ...parts,
    choose(plan) {
      length = plan.length;
      return plan.filter((_, at) => keep === null || keep.has(at));
    },
  });
  const cpu = process.cpuUsage(begun).user / 1e6;
  console.log(JSON.stringify({ seed: options.seed, ...figures, plan: length, cpu, failure }));
  if (!failure) return true;
  for (const line of story.slice(-maxStory)) console.log(line);
  console.log(`\nseed ${options.seed} breaks ${failure.invariant}: ${failure.text}`);
  console.log(`again: node scripts/simulate.ts ${argumentsOf(options).map(quoted).join(' ')}`);
  return false;
}

async function startPostgres() {
  const { startSharedPostgres } = await import('#lab/simulation/machine/shared-postgres.ts');
  return startSharedPostgres();
}

/** What is not given is drawn, so that seeds differ in kind. */
function sizeOf(options: RunOptions): PlanSize {
  const random = new Random(`${options.seed}/size`);
  const drawn = {
    hours: random.pick([0.25, 0.5, 1.5]),
    mails: random.pick([15, 40, 100]),
    faultsPerHour: random.pick([4, 12, 30]),
  };
  const hours = options.days ? Number(options.days) * 24 : Number(options.hours ?? drawn.hours);
  return {
    hours,
    mails: Number(options.mails ?? drawn.mails),
    faultsPerHour: Number(options['faults-per-hour'] ?? drawn.faultsPerHour),
  };
}

const quoted = (text: string) => (/^[\w,.-]+$/.test(text) ? text : `'${text}'`);
