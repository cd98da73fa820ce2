/** One word has one meaning in src/, and a declaration one comment. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';

const root = join(import.meta.dirname, '../..');
const read = (file: string) => readFileSync(join(root, file), 'utf8');
const sources = globSync('src/**/*.ts', { cwd: root }).sort();

test('an exported type has one definition, and its name is unique', (t) => {
  const types = sources.flatMap((file) =>
    [...read(file).matchAll(/^export (?:abstract )?(?:interface|type|class) (\w+)/gm)].map(([, name]) => ({
      name: name!,
      file,
    })),
  );
  const repeated = [...Map.groupBy(types, ({ name }) => name)].filter(([, places]) => places.length > 1);
  t.deepEqual(
    Object.fromEntries(repeated.map(([name, places]) => [name, places.map(({ file }) => file)])),
    {},
  );
});

/** The names in the last column of the table of words; `*` stands for any letters. */
function unusedNames(): string[] {
  const table = /^## One word, one meaning\n([\s\S]*?)^## /m.exec(read('src/README.md'))![1]!;
  const rows = table.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| ---'));
  return rows.flatMap((row) => [...row.split('|')[4]!.matchAll(/`([^`]+)`/g)].map(([, name]) => name!));
}

test('no name of src/ gives a word of the table in src/README.md a second meaning', (t) => {
  const names = unusedNames();
  t.true(names.length > 10);
  const pattern = new RegExp(`(?<![\\w$])(?:${names.join('|').replaceAll('*', '[A-Za-z]+')})(?![\\w$])`, 'g');
  const found = sources.flatMap((file) =>
    [...read(file).matchAll(pattern)].map(([name]) => `${file}: ${name}`),
  );
  t.deepEqual(found, []);
});

test('a declaration has one comment, and its lines fit in a window of 132 columns', (t) => {
  const stacked = sources.filter((file) => /\*\/\n[ \t]*\/\*\*/.test(read(file)));
  const wide = sources.flatMap((file) =>
    [...read(file).matchAll(/^[ \t]*(?:\/?\*|\/\/).{131,}$/gm)].map(([line]) => `${file}: ${line}`),
  );
  t.deepEqual({ stacked, wide }, { stacked: [], wide: [] });
});
