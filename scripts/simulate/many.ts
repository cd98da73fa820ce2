/** Many runs in some processes. */
import { spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { argumentsOf, type ManyOptions, type RunOptions, seedsOf } from './options.ts';

interface Figures {
  seed: string;
  hours: number;
  plan: number;
  fingerprint: string;
  /** Null: no promise was broken. */
  failure: { invariant: string } | null;
}

export interface Outcome {
  runs: Figures[];
  /** The name of the invariant that the last run broke; null: it broke none. */
  broken: string | null;
  output: string;
}

/** Runs in one process: a start takes longer than many a run. */
const runsInProcess = 10;
const script = new URL('../simulate.ts', import.meta.url).pathname;

export function runApart(options: Partial<RunOptions>, seeds?: string): Promise<Outcome> {
  return new Promise((resolve) => {
    const which =
      seeds === undefined ? argumentsOf(options) : [...argumentsOf(options), '--seeds', seeds, '--jobs', '1'];
    const child = spawn(process.execPath, [script, ...which], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, NODE_COMPILE_CACHE: join(tmpdir(), 'postern-simulation-cache') },
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (bytes) => {
        output += bytes;
      });
    child.on('close', (code) => {
      const isFigures = (line: string) => line.startsWith('{"seed"');
      const lines = output.split('\n');
      const runs = lines.filter(isFigures).map((line) => JSON.parse(line) as Figures);
      const crashed = code === 0 ? null : 'theSimulationItself';
      const broken = runs.at(-1)?.failure?.invariant ?? crashed;
      resolve({ runs, broken, output: lines.filter((line) => !isFigures(line)).join('\n') });
    });
  });
}

/** Prints each failure with its seed. */
export async function runSeeds({ seeds = '1-50', jobs, ...options }: ManyOptions): Promise<boolean> {
  const all = seedsOf(seeds);
  const failed: string[] = [];
  let [hours, count] = [0, 0];
  const begun = performance.now();
  const slices: string[] = [];
  for (let at = 0; at < all.length; at += runsInProcess)
    slices.push(`${all[at]}-${all[Math.min(at + runsInProcess, all.length) - 1]}`);
  await inParallel(slices, Number(jobs), async (slice) => {
    const { runs, output } = await runApart(options, slice);
    count += runs.length;
    hours += runs.reduce((sum, run) => sum + run.hours, 0);
    failed.push(...runs.filter(({ failure }) => failure).map(({ seed }) => seed));
    if (output.trim()) console.log(output);
  });
  const seconds = (performance.now() - begun) / 1000;
  const rate = `${hours.toFixed(0)} simulated hours in ${seconds.toFixed(0)} s`;
  console.log(`${count} of ${all.length} seeds, ${rate}; failed: ${failed.sort().join(' ') || 'none'}`);
  return failed.length === 0 && count === all.length;
}

export async function inParallel<Item>(
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
