/**
 * The whole service in virtual time (docs/simulation.md):
 *
 *   node scripts/simulate.ts --seed 7            one run; after a failure, the story of the mail concerned
 *   node scripts/simulate.ts --seed 7 --shrink   the shortest plan that fails in the same way
 *   node scripts/simulate.ts --seeds 1-50        many runs, ten in a process
 *   node scripts/simulate.ts --planted           finds each planted fault, and prints how many seeds that took
 *   node scripts/simulate.ts --scale             how many nodes and destinations a queue carries, as docs/sizing.md shows it
 *
 * A run is a function of its options: --days or --hours, --mails and --faults-per-hour, which are drawn from the seed if they are
 * not given; --plant NAME; --keep with the numbers of the items of the plan that happen.
 */
import { parseArgs } from 'node:util';
import { runSeeds } from './simulate/many.ts';
import { runHere } from './simulate/one.ts';
import { seedsOf } from './simulate/options.ts';
import { findPlanted } from './simulate/planted.ts';
import { shrink } from './simulate/shrink.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    seeds: { type: 'string' },
    days: { type: 'string' },
    hours: { type: 'string' },
    mails: { type: 'string' },
    'faults-per-hour': { type: 'string' },
    nodes: { type: 'string' },
    plant: { type: 'string' },
    planted: { type: 'boolean', default: false },
    scale: { type: 'boolean', default: false },
    keep: { type: 'string' },
    shrink: { type: 'boolean', default: false },
    jobs: { type: 'string', default: '2' },
  },
});

export type Options = typeof values;

if (import.meta.main) process.exit((await main()) ? 0 : 1);

async function main(): Promise<boolean> {
  if (values.scale) return (await import('./simulate/scale.ts')).showScale();
  if (values.planted) return findPlanted(values);
  if (values.seeds && values.jobs !== '1') return runSeeds(values);
  if (values.shrink) return shrink(values);
  return runHere(values.seeds ? seedsOf(values.seeds).map(String) : [values.seed], values);
}
