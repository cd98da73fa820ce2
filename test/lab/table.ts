/**
 * Cases of a test as text: a line of test/fixtures/tables/NAME.txt is a row, with ` | ` between its cells. A cell that is JSON is
 * that value, `~i no such user` the expression /no such user/i, any other is a text; {ab*3} is ababab. A line that begins
 * with # is a remark.
 */
import { readFileSync } from 'node:fs';

const folder = new URL('../fixtures/tables/', import.meta.url);

export function table<Row extends unknown[]>(name: string): Row[] {
  return linesOf(name).map((line) => line.split(' | ').map((cell) => readCell(cell.trim())) as Row);
}

/** A table of one column, in whose texts `|` may be. */
export function column<Cell = string>(name: string): Cell[] {
  return linesOf(name).map((line) => readCell(line) as Cell);
}

export const repeated = (text: string) =>
  text.replace(/\{([^{}]+)\*(\d+)\}/g, (_, one, times) => one.repeat(times));

/** What a terminal shows, or a file has: the lines of test/fixtures/pictures/NAME.txt. */
export const picture = (name: string): string[] =>
  readFileSync(new URL(`../pictures/${name}.txt`, folder), 'utf8')
    .slice(0, -1)
    .split('\n');

function linesOf(name: string): string[] {
  const lines = readFileSync(new URL(`${name}.txt`, folder), 'utf8').split('\n');
  const cases = lines.filter((line) => line !== '' && !/^#( |$)/.test(line));
  if (cases.length === 0) throw new Error(`the table ${name} has no rows`);
  return cases;
}

function readCell(cell: string): unknown {
  const [, flags, source] = /^~(\w*) (.*)$/.exec(cell) ?? [];
  if (source !== undefined) return new RegExp(source, flags);
  const text = repeated(cell);
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
