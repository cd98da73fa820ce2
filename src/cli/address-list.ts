/**
 * Files of addresses: one a line, in CSV the first column, with or without a line of headings. Empty lines and
 * # comments are skipped. All of the file counts or nothing of it: a bad line is named with its number.
 */
import { readFile } from 'node:fs/promises';
import { text as textOf } from 'node:stream/consumers';
import { compareKey, domainOf } from '../address.ts';
import { Failure } from './failure.ts';

const mostNamed = 5;

/** The addresses, the first of each that compare as the same. `-` is standard input. */
export async function readAddresses(file: string): Promise<string[]> {
  const lines = (await readText(file))
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .map((line, index) => ({ number: index + 1, text: firstColumn(line) }))
    .filter(({ text }) => text !== '' && !text.startsWith('#'));
  if (lines[0] && !lines[0].text.includes('@')) lines.shift();
  const bad = lines.filter(({ text }) => domainOf(text) === null);
  if (bad.length === 0) return unique(lines.map(({ text }) => text));
  const named = bad.slice(0, mostNamed).map(({ number, text }) => `line ${number} (${JSON.stringify(text)})`);
  const more = bad.length > mostNamed ? ` and ${bad.length - mostNamed} more` : '';
  throw new Failure(
    `${file}: no email address in ${named.join(', ')}${more}; nothing was imported, mend them first`,
  );
}

async function readText(file: string): Promise<string> {
  try {
    return await (file === '-' ? textOf(process.stdin) : readFile(file, 'utf8'));
  } catch (error) {
    const reason = (error as Error).message.split(',')[0];
    throw new Failure(`${file} cannot be read: ${reason}; name a file that can be`);
  }
}

function firstColumn(line: string): string {
  return line
    .split(/[,;\t]/)[0]!
    .trim()
    .replace(/^"(.*)"$/, '$1');
}

function unique(addresses: string[]): string[] {
  const byKey = new Map<string, string>();
  for (const address of addresses) {
    if (!byKey.has(compareKey(address))) byKey.set(compareKey(address), address);
  }
  return [...byKey.values()];
}
