/** The rules of the house about who may import whom, read off the imports themselves. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import test from 'ava';

const src = join(import.meta.dirname, '../../src');

/** Each file of src/, relative to it, with the files of src/ that it imports (types included). */
const imports = new Map(
  readdirSync(src, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => [file, importsOf(file)]),
);

function importsOf(file: string): string[] {
  const text = readFileSync(join(src, file), 'utf8');
  return [...text.matchAll(/(?:from|import) '(\.[^']+)'/g)].map(([, path]) =>
    normalize(relative(src, join(src, dirname(file), path!))),
  );
}

const folderOf = (file: string) => (file.includes('/') ? file.split('/', 1)[0]! : '.');

/** Leaves: what anybody may import. They hold types, pure functions and the edges of the machine. */
const leaves = [
  ...[
    'abort',
    'bounded',
    'cache',
    'address',
    'clock',
    'config',
    'counted',
    'id',
    'log',
    'maillog',
    'memory',
    'nouns',
    'outcome',
    'patch',
    'refusal',
    'return-path',
    'secret',
    'shape',
    'source-pool',
    'steps',
    'visible',
    'whole-file',
  ].map((name) => `${name}.ts`),
];

/** Folders that are leaves as a whole. */
const leafFolders = ['settings', 'replies'];

const isLeaf = (file: string) => leaves.includes(file) || leafFolders.includes(folderOf(file));

const stages = ['compose', 'queue', 'route', 'smtp'];

test('leaves import leaves alone', (t) => {
  for (const [file, imported] of imports) {
    if (!isLeaf(file)) continue;
    t.deepEqual(
      imported.filter((one) => !isLeaf(one)),
      [],
      file,
    );
  }
});

test('the stages of the way import no other folder', (t) => {
  for (const [file, imported] of imports) {
    if (!stages.includes(folderOf(file))) continue;
    const others = imported.filter((one) => folderOf(one) !== folderOf(file) && !isLeaf(one));
    t.deepEqual(others, [], file);
  }
});

test('the delivery path never reaches the database', (t) => {
  const reached = new Set<string>(['deliver.ts']);
  for (const file of reached) for (const one of imports.get(file) ?? []) reached.add(one);
  t.deepEqual(
    [...reached].filter((file) => folderOf(file) === 'db'),
    [],
  );
});

test('knex is imported in db/ alone', (t) => {
  const users = [...imports.keys()].filter((file) =>
    /from 'knex'/.test(readFileSync(join(src, file), 'utf8')),
  );
  t.deepEqual(
    users.filter((file) => folderOf(file) !== 'db'),
    [],
  );
});

test('nobody imports main.ts or the command line', (t) => {
  for (const [file, imported] of imports) {
    t.false(imported.includes('main.ts'), file);
    if (folderOf(file) !== 'cli')
      t.deepEqual(
        imported.filter((one) => folderOf(one) === 'cli'),
        [],
        file,
      );
  }
});

test('importing a file has no effect: only the entries run, and only as the main module', (t) => {
  const entries = [...imports.keys()].filter((file) =>
    /import\.meta\.main/.test(readFileSync(join(src, file), 'utf8')),
  );
  t.deepEqual(entries.sort(), [
    'cli/postern.ts',
    'src/server/compose-thread.ts',
    'main.ts',
    'src/bounces/parser-thread.ts',
  ]);
});

test('files stay small: none over 400 lines, the median under 150', (t) => {
  const lengths = [...imports.keys()].map((file) => readFileSync(join(src, file), 'utf8').split('\n').length);
  t.true(Math.max(...lengths) <= 400);
  t.true(lengths.sort((a, b) => a - b)[lengths.length >> 1]! < 150);
});
