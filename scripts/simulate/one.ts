/** Makes one run in this process, and prints what came of it: a line of figures, then a failure with its story. */
import type { PlanSize } from '#lab/simulation/plan.ts';
import { Random } from '#lab/simulation/random.ts';
import { replaceBuiltins } from '#lab/simulation/virtual-builtins.ts';
import { argumentsOf, type RunOptions } from './options.ts';

/** The lines of a story that are printed; the last ones tell most. */
const maxStory = 60;

/** True: no promise was broken. */
export async function runHere(options: RunOptions): Promise<boolean> {
  const realNow = process.hrtime.bigint;
  const begun = realNow();
  replaceBuiltins(options.seed);
  if (options.plant) (await import('#lab/simulation/planting.ts')).plant(options.plant);
  const { simulate } = await import('#lab/simulation/simulate.ts');
  const keep = options.keep === undefined ? null : new Set(options.keep.split(',').map(Number));
  let length = 0;
  const { failure, story, figures } = await simulate(options.seed, sizeOf(options), (plan) => {
    length = plan.length;
    return plan.filter((_, at) => keep === null || keep.has(at));
  });
  const seconds = Number(realNow() - begun) / 1e9;
  const cpu = process.cpuUsage().user / 1e6;
  console.log(JSON.stringify({ seed: options.seed, ...figures, plan: length, seconds, cpu, failure }));
  if (!failure) return true;
  for (const line of story.slice(-maxStory)) console.log(line);
  console.log(`\nseed ${options.seed} breaks ${failure.invariant}: ${failure.text}`);
  console.log(`again: node scripts/simulate.ts ${argumentsOf(options).map(quoted).join(' ')}`);
  return false;
}

/** What is not given is drawn, so that seeds differ in kind. */
function sizeOf(options: RunOptions): PlanSize {
  const random = new Random(`${options.seed}/size`);
  const drawn = {
    hours: random.pick([0.5, 1, 3]),
    mails: random.pick([15, 40, 100]),
    faultsPerHour: random.pick([1, 5, 15]),
  };
  const hours = options.days ? Number(options.days) * 24 : Number(options.hours ?? drawn.hours);
  return {
    hours,
    mails: Number(options.mails ?? drawn.mails),
    faultsPerHour: Number(options['faults-per-hour'] ?? drawn.faultsPerHour),
  };
}

const quoted = (text: string) => (/^[\w,.-]+$/.test(text) ? text : `'${text}'`);
