/** The structure of src/: folders import downwards only, SQL stays in its places, and files and folders stay small. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import test from 'ava';

const src = join(import.meta.dirname, '../../src');
const read = (file: string) => readFileSync(join(src, file), 'utf8');
const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));

/** Each file of src/, relative to it, with the files of src/ that it imports (types included). */
const imports = new Map(files.map((file) => [file, importsOf(file)]));

function importsOf(file: string): string[] {
  return [...read(file).matchAll(/(?:from|import)\s*\(?'((?:\.|#)[^']+)'/g)]
    .map(([, path]) => (path!.startsWith('#') ? path!.slice(1) : normalize(join(dirname(file), path!))))
    .filter((path) => !path.startsWith('..'));
}

/** The floors from the top, as src/README.md has them; the folders of one line do not import each other. */
const floors = readFloors();

function readFloors(): string[][] {
  const text = /<!-- floors -->\n([\s\S]*?)<!-- \/floors -->/.exec(read('README.md'))![1]!;
  const lines = text.split('\n').filter((line) => /^\d+\. /.test(line));
  return lines.map((line) => [...line.matchAll(/`([^`]+?)\/?`/g)].map(([, name]) => name!));
}

const isIn = (file: string, folder: string) => file === folder || file.startsWith(`${folder}/`);

function floorOf(file: string): number {
  const floor = floors.findIndex((folders) => folders.some((folder) => isIn(file, folder)));
  if (floor === -1) throw new Error(`${file} is on no floor of src/README.md`);
  return floor;
}

const roomOf = (file: string) => floors.flat().find((folder) => isIn(file, folder));

const arrows = [...imports].flatMap(([file, imported]) => imported.map((one) => [file, one] as const));
const show = ([file, one]: readonly [string, string]) => `${file} → ${one}`;

test('a folder imports only folders below it in src/README.md', (t) => {
  t.true(arrows.length > 2000);
  const upwards = arrows.filter(
    ([file, one]) => roomOf(file) !== roomOf(one) && floorOf(file) >= floorOf(one),
  );
  t.deepEqual(upwards.map(show), []);
});

test('the floors of src/README.md are the folders of src and of mail', (t) => {
  const foldersIn = (folder: string) =>
    readdirSync(join(src, folder), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => join(folder, name));
  const expected = ['main.ts', ...foldersIn('').filter((name) => name !== 'mail'), ...foldersIn('mail')];
  t.deepEqual(floors.flat().sort(), expected.sort());
});

test('the delivery path never reaches the database: no file of it imports a file of rows/', (t) => {
  const path = ['mail/compose', 'mail/queue', 'mail/deliver'];
  const isOnPath = (file: string) => path.some((folder) => isIn(file, folder)) && !file.includes('/rows/');
  const reached = new Set(files.filter(isOnPath));
  for (const file of reached) for (const one of imports.get(file) ?? []) reached.add(one);
  t.deepEqual(
    [...reached].filter((file) => /\/rows\/|^platform\/database\//.test(file)),
    [],
  );
});

const holdsSql = (file: string) => /\/rows\/|^platform\/(database|vendor)\//.test(file);

test('only rows/, platform/database and platform/vendor import knex', (t) => {
  t.deepEqual(
    files.filter((file) => /from 'knex'/.test(read(file)) && !holdsSql(file)),
    [],
  );
});

test('only rows/, platform/database and platform/vendor contain SQL', (t) => {
  const statement =
    /\.raw\(|[wW]hereRaw\(|\b(?:db|trx)\('[a-z_]+'\)|'select |\bselect [^']* from |\bupdate [a-z_]+ set\b|\binsert into\b|\bdelete from\b/;
  const code = (file: string) => read(file).replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*/g, '');
  t.deepEqual(
    files.filter((file) => statement.test(code(file)) && !holdsSql(file)),
    [],
  );
});

test('importing a file has no effect: only the entries run, and only as the main module', (t) => {
  const entries = files.filter((file) => /import\.meta\.main/.test(read(file)));
  t.deepEqual(entries.sort(), [
    'cli/postern.ts',
    'mail/received/reading-thread.ts',
    'mail/returned/parser-thread.ts',
    'main.ts',
    'server/compose-thread.ts',
    'server/message-thread.ts',
  ]);
});

test('file names are unique, except routes.ts and schema.ts of resource folders', (t) => {
  const names = files.map((file) => file.split('/').at(-1)!);
  const repeated = names.filter((name, index) => names.indexOf(name) !== index);
  t.deepEqual(
    [...new Set(repeated)].filter((name) => !['routes.ts', 'schema.ts'].includes(name)),
    [],
  );
});

test('the floor plan stays small: seven folders and two files, at most 25 files in a folder', (t) => {
  t.deepEqual(readdirSync(src).sort(), [
    'README.md',
    'accounts',
    'cli',
    'front',
    'mail',
    'main.ts',
    'operate',
    'platform',
    'server',
  ]);
  const folders = new Map<string, number>();
  for (const file of files) folders.set(dirname(file), (folders.get(dirname(file)) ?? 0) + 1);
  t.deepEqual(
    [...folders].filter(([, count]) => count > 25),
    [],
  );
});

test('files stay small: one idea has at most 600 lines, the median under 120', (t) => {
  const lengths = files.map((file) => read(file).split('\n').length);
  t.true(Math.max(...lengths) <= 600);
  t.true(lengths.sort((a, b) => a - b)[lengths.length >> 1]! < 120);
});
