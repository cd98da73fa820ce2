/** The planted faults of the simulation still fit the source: each text is in its file, once. */
import { glob, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import test from 'ava';
import { plantedFaults } from '#lab/simulation/planted-faults.ts';

const src = join(import.meta.dirname, '../../src');

test('each planted fault changes one place of one file', async (t) => {
  const files = new Map<string, string>();
  for await (const file of glob('**/*.ts', { cwd: src })) files.set(basename(file), join(src, file));
  for (const [name, { file, replace, by }] of Object.entries(plantedFaults)) {
    const source = await readFile(files.get(file)!, 'utf8');
    t.is(source.split(replace).length, 2, `${name} in ${file}`);
    t.not(replace, by);
  }
});
