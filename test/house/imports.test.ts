/** The structure of src/: imports follow the table in src/README.md, and files and folders stay small. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import test from 'ava';

const src = join(import.meta.dirname, '../../src');
const read = (file: string) => readFileSync(join(src, file), 'utf8');
const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));

/** Each file of src/, relative to it, with the files of src/ that it imports (types included). */
const imports = new Map(files.map((file) => [file, importsOf(file)]));

function importsOf(file: string): string[] {
  return [...read(file).matchAll(/(?:from|import) '(\.[^']+)'/g)]
    .map(([, path]) => normalize(relative(src, join(src, dirname(file), path!))))
    .filter((path) => !path.startsWith('..'));
}

/** A folder directly in src/, or a file at its root. */
const roomOf = (file: string) => file.split('/', 1)[0]!;

/** `room` to the rooms that it may import, as src/README.md has them. */
function readTable(): Map<string, string[]> {
  const text = /<!-- imports -->\n([\s\S]*?)<!-- \/imports -->/.exec(read('README.md'))![1]!;
  const rows = text.trim().split('\n').slice(2);
  const named = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name!);
  return new Map(
    rows.map((row) => {
      const [, room, may] = row.split('|');
      return [named(room!)[0]!, named(may!)];
    }),
  );
}

test('the rooms import each other as src/README.md says, and every entry of its table is used', (t) => {
  const used = new Map<string, Set<string>>();
  for (const [file, imported] of imports) {
    const room = roomOf(file);
    const others = used.get(room) ?? new Set();
    for (const one of imported) if (roomOf(one) !== room) others.add(roomOf(one));
    used.set(room, others);
  }
  const sorted = (entries: Iterable<[string, Iterable<string>]>) =>
    Object.fromEntries([...entries].map(([room, may]) => [room, [...may].sort()] as const).sort());
  t.deepEqual(sorted(used), sorted(readTable()));
});

test('a room imports only rooms below it in the table of src/README.md', (t) => {
  const table = readTable();
  const floors = [...table.keys()];
  const upwards = [...table].flatMap(([room, may]) =>
    may.filter((one) => floors.indexOf(one) < floors.indexOf(room)).map((one) => `${room} → ${one}`),
  );
  t.deepEqual(upwards, []);
});

test('the delivery path never reaches the database', (t) => {
  const reached = new Set<string>(['deliver.ts']);
  for (const file of reached) for (const one of imports.get(file) ?? []) reached.add(one);
  t.deepEqual(
    [...reached].filter((file) => roomOf(file) === 'db'),
    [],
  );
});

test('only db/ and vendor/ import knex', (t) => {
  const users = files.filter((file) => /from 'knex'/.test(read(file)));
  t.deepEqual(
    users.filter((file) => !['db', 'vendor'].includes(roomOf(file))),
    [],
  );
});

test('importing a file has no effect: only the entries run, and only as the main module', (t) => {
  const entries = files.filter((file) => /import\.meta\.main/.test(read(file)));
  t.deepEqual(entries.sort(), [
    'mail/returned/parser-thread.ts',
    'cli/postern.ts',
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

test('the floor plan stays small: at most 30 entries, 8 files at the root, 25 files in a folder', (t) => {
  const entries = readdirSync(src, { withFileTypes: true });
  t.true(entries.length <= 30, `${entries.length} entries`);
  t.true(entries.filter((entry) => entry.isFile()).length <= 8);
  const folders = new Map<string, number>();
  for (const file of files) folders.set(dirname(file), (folders.get(dirname(file)) ?? 0) + 1);
  folders.delete('.');
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
