/** src/README.md is a map: its searches find the files that it names, its rooms are the folders, its words are where it says. */
import { globSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';

const src = join(import.meta.dirname, '../../src');
const read = (file: string) => readFileSync(join(src, file), 'utf8');
const map = read('README.md');
const sources = globSync('**/*.ts', { cwd: src });
const quoted = (text: string) => [...text.matchAll(/`([^`]+)`/g)].map(([, name]) => name!);

/** The rows of the table below a heading, each with its cells. */
function rowsBelow(heading: string): string[][] {
  const section = map.split(`\n## ${heading}\n`)[1]!.split('\n## ')[0]!;
  const rows = section.split('\n').filter((line) => line.startsWith('| '));
  return rows.slice(2).map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

const foldersIn = (folder: string) =>
  readdirSync(join(src, folder), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => `${folder}${name}/`)
    .sort();

/** As a word, not as a part of one. */
function isIn(text: string, words: string): boolean {
  return text.split(words).some((before, index, parts) => index < parts.length - 1 && !/[\w$]$/.test(before));
}

test('each search finds the files that the map names', (t) => {
  const searches = [...map.matchAll(/A search for\s+`([^`]+)`\s+finds\s+((?:[^.`]*`[^`]+`)+)/g)];
  t.true(searches.length >= 4);
  for (const [, words, files] of searches) {
    const named = quoted(files!).filter((name) => name.endsWith('.ts'));
    t.deepEqual(
      named.filter((file) => !isIn(read(file), words!)),
      [],
      words!,
    );
  }
});

test('the path of a message, from HTTP to the webhook, is at most 25 files and 4,500 lines that lead to each other', (t) => {
  const path = rowsBelow('The path of a message').map(([, file]) => quoted(file!)[0]!);
  t.true(path.length <= 25, `${path.length} files`);
  const lines = path.reduce((sum, file) => sum + read(file).split('\n').length - 1, 0);
  t.true(lines <= 4500, `${lines} lines`);
  const importsOf = (file: string) =>
    [...read(file).matchAll(/from '(?:#|\.\/)([^']+)'/g)].map(([all, name]) =>
      all.includes("'#") ? name! : `${file.slice(0, file.lastIndexOf('/') + 1)}${name}`,
    );
  // What passes a step to the next one: a file of the path, or the files of server/ that build both.
  const builders = sources.filter((file) => file.startsWith('server/')).flatMap(importsOf);
  const isLed = (file: string) => path.some((one) => importsOf(one).includes(file));
  t.deepEqual(
    path.filter(
      (file) =>
        !isLed(file) && !importsOf(file).some((one) => path.includes(one)) && !builders.includes(file),
    ),
    [],
  );
});

test('the rooms are the folders of src, and those within a room are named', (t) => {
  const rooms = rowsBelow('Rooms');
  t.deepEqual(rooms.map(([room]) => quoted(room!)[0]!).sort(), foldersIn(''));
  for (const room of ['front/', 'mail/', 'platform/']) {
    const [, owns] = rooms.find(([name]) => name === `\`${room}\``)!;
    const named = quoted(owns!).filter((name) => name.startsWith(room));
    t.deepEqual(named.sort(), foldersIn(room));
  }
});

test('most files have under 120 lines, none over 600', (t) => {
  const lengths = sources.map((file) => read(file).split('\n').length - 1).sort((a, b) => a - b);
  t.true(lengths[lengths.length >> 1]! < 120);
  t.true(lengths.at(-1)! <= 600);
});

test('each word of the glossary is in the file that defines it', (t) => {
  const words = rowsBelow('Glossary');
  t.true(words.length > 15);
  const missing = words.filter(([word, , file]) => {
    const letters = word!.toLowerCase().replace(/[\s-]/g, '');
    return !read(quoted(file!)[0]!).toLowerCase().replace(/[\s-]/g, '').includes(letters);
  });
  t.deepEqual(missing, []);
});
