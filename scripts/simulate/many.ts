/** Many runs, each in a process of its own, because modules keep state; and the search for the planted faults. */
import { spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { plantedFaults } from '#lab/simulation/planted-faults.ts';
import { argumentsOf, type ManyOptions, type RunOptions, seedsOf } from './options.ts';

export interface Outcome {
  /** The name of the invariant that was broken; null: none was. */
  broken: string | null;
  output: string;
  figures: { hours: number; plan: number };
}

const script = new URL('../simulate.ts', import.meta.url).pathname;

export function runApart(options: RunOptions): Promise<Outcome> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, ['--disable-warning=DEP0137', script, ...argumentsOf(options)], {
      stdio: ['ignore', 'pipe', 'pipe'],
      // A start takes longer than many a run.
      env: { ...process.env, NODE_COMPILE_CACHE: join(tmpdir(), 'postern-simulation-cache') },
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (bytes) => {
        output += bytes;
      });
    child.on('close', (code) => {
      const line = output.split('\n').find((text) => text.startsWith('{"seed"'));
      const { failure = null, hours = 0, plan = 0 } = line ? JSON.parse(line) : {};
      const crashed = code === 0 ? null : 'theSimulationItself';
      resolve({ broken: failure?.invariant ?? crashed, output, figures: { hours, plan } });
    });
  });
}

/** Prints each failure with its seed. */
export async function runSeeds({ seeds, jobs, ...options }: ManyOptions): Promise<boolean> {
  const failed: number[] = [];
  let hours = 0;
  const begun = performance.now();
  const all = seedsOf(seeds, '1-50');
  await inParallel(all, Number(jobs), async (seed) => {
    const { broken, output, figures } = await runApart({ ...options, seed: String(seed) });
    hours += figures.hours;
    if (broken === null) return;
    failed.push(seed);
    console.log(output);
  });
  const seconds = (performance.now() - begun) / 1000;
  const rate = `${hours.toFixed(0)} simulated hours in ${seconds.toFixed(0)} s`;
  console.log(`${all.length} seeds, ${rate}; failed: ${failed.sort((a, b) => a - b).join(' ') || 'none'}`);
  return failed.length === 0;
}

/** Prints the table of planted faults: the first seed that finds each, and by which invariant. */
export async function findPlanted({ seeds, jobs, plant, ...options }: ManyOptions): Promise<boolean> {
  const names = Object.keys(plantedFaults).filter((name) => plant === undefined || name === plant);
  let missed = 0;
  await inParallel(names, Number(jobs), async (name) => {
    for (const [at, seed] of seedsOf(seeds, '1-200').entries()) {
      const { broken, output } = await runApart({ ...options, seed: String(seed), plant: name });
      if (broken === null) continue;
      console.log(`| ${name} | ${at + 1} | ${broken} |`);
      if (broken === 'theSimulationItself') console.log(output);
      return;
    }
    missed += 1;
    console.log(`| ${name} | not found | |`);
  });
  return missed === 0;
}

async function inParallel<Item>(
  items: Item[],
  count: number,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const left = [...items];
  const worker = async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: count }, worker));
}
