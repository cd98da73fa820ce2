/**
 * The search for the planted faults: how many seeds each needs, all by the same draws. What has been found is kept in a file, so a
 * search that is interrupted goes on, unless the simulation has changed. It keeps the table of docs/simulation.md up to date.
 */
import { hash } from 'node:crypto';
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { plantedFaults } from '#lab/simulation/planted-faults.ts';
import { inParallel, runApart } from './many.ts';
import { type ManyOptions, seedsOf } from './options.ts';

interface Search {
  /** A hash of the simulation's files and of the options. */
  simulation: string;
  faults: Record<string, Found>;
}

interface Found {
  /** Seeds that were run. */
  seeds: number;
  /** What the last of them broke; null: nothing. */
  invariant: string | null;
}

/** All faults take turns: most need few seeds. */
const seedsAtOnce = 20;
const root = join(import.meta.dirname, '../..');
const page = join(root, 'docs/simulation.md');
const stateFile = join(tmpdir(), 'postern-planted-faults.json');

export async function findPlanted({
  seeds = '1-200',
  jobs,
  plant,
  ...options
}: ManyOptions): Promise<boolean> {
  const last = seedsOf(seeds).at(-1)!;
  const search = readSearch(options);
  const names = Object.keys(plantedFaults).filter((name) => plant === undefined || name === plant);
  const isOpen = (name: string) => {
    const found = search.faults[name];
    return !found || (found.invariant === null && found.seeds < last);
  };
  while (names.some(isOpen)) {
    await inParallel(names.filter(isOpen), Number(jobs), async (name) => {
      const begin = search.faults[name]?.seeds ?? 0;
      const slice = `${begin + 1}-${Math.min(begin + seedsAtOnce, last)}`;
      const own = optionsFor(name, options);
      const { runs, broken, output } = await runApart({ ...own, plant: name }, slice);
      const hasCrashed = broken === 'theSimulationItself';
      if (hasCrashed) console.log(output);
      // A run that crashed has no figures.
      const at = begin + runs.length + Number(hasCrashed);
      const found = { seeds: at, invariant: broken && (await isSoundWithout(own, at)) ? broken : null };
      search.faults[name] = found;
      writeFileSync(stateFile, JSON.stringify(search, null, 1));
      if (plant === undefined) writeTable(search);
      if (found.invariant !== null || at === last) console.log(rowOf(name, found));
    });
  }
  return names.every((name) => search.faults[name]!.invariant !== null);
}

/** A run of several nodes takes much longer, so it is short, and much happens in it. */
const severalNodes = { hours: '0.1', mails: '15', 'faults-per-hour': '60' };

type SearchOptions = Omit<ManyOptions, 'jobs' | 'seeds' | 'plant'>;

function optionsFor(name: string, options: SearchOptions): SearchOptions {
  const { nodes } = plantedFaults[name]!;
  return nodes === undefined ? options : { ...severalNodes, ...options, nodes: String(nodes) };
}

/** A seed that breaks a promise without the fault has not found it. */
async function isSoundWithout(options: SearchOptions, seed: number): Promise<boolean> {
  const { broken, output } = await runApart({ ...options, seed: String(seed) });
  if (broken !== null) console.log(output);
  return broken === null;
}

function readSearch(options: SearchOptions): Search {
  const files = globSync('{test/lab/simulation,scripts/simulate}/**/*.ts', { cwd: root }).sort();
  const texts = files.map((file) => readFileSync(join(root, file), 'utf8'));
  const simulation = hash('sha256', texts.join('\n') + JSON.stringify(options));
  const kept = existsSync(stateFile) ? (JSON.parse(readFileSync(stateFile, 'utf8')) as Search) : null;
  return kept?.simulation === simulation ? kept : { simulation, faults: {} };
}

function rowOf(name: string, { seeds, invariant }: Found): string {
  const missing = seeds === 0 ? 'not searched' : `not in ${seeds}`;
  return `| ${name} | ${invariant === null ? missing : seeds} | ${invariant ?? ''} |`;
}

function writeTable({ faults }: Search): void {
  const notSearched: Found = { seeds: 0, invariant: null };
  const all = Object.keys(plantedFaults).map((name) => [name, faults[name] ?? notSearched] as const);
  const sorted = all.toSorted(
    ([, a], [, b]) => Number(a.invariant === null) - Number(b.invariant === null) || a.seeds - b.seeds,
  );
  const found = all.filter(([, { invariant }]) => invariant !== null).length;
  const lines = [
    `${found} of ${all.length} were found.`,
    '',
    '| fault | seeds | found by |',
    '| --- | --- | --- |',
    ...sorted.map(([name, one]) => rowOf(name, one)),
  ];
  const [before, , after] = readFileSync(page, 'utf8').split(/<!-- \/?planted -->\n/);
  writeFileSync(page, `${before}<!-- planted -->\n${lines.join('\n')}\n<!-- /planted -->\n${after}`);
}
