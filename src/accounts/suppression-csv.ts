/**
 * Lists of suppressed addresses as CSV: read, and written.
 *
 * Read are the addresses of the first column, with or without a line of headings; a list with one address a line is that
 * too. Empty lines and # comments are skipped. All of it counts or nothing: a bad line is named with its number.
 *
 * An address may begin with what a spreadsheet takes for a formula (`=cmd…@example.org` is one by RFC 5321), and so may a
 * reason. Such a cell is written with an apostrophe before it, as OWASP advises, which is taken off when it is read; a cell
 * that has such an apostrophe itself gets another.
 */
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setImmediate as turn } from 'node:timers/promises';
import { CsvError, parse } from 'csv-parse';
import { stringify } from 'csv-stringify/sync';
import { iso } from '../base/clock.ts';
import { pageOfSuppressions, type Suppression } from '../db/accounts/suppressions.ts';
import type { Db } from '../db/engine/open.ts';
import { compareKey, domainOf } from '../mail/address.ts';

export interface BadLine {
  line: number;
  /** What is there instead of an address, cut where it is long. */
  text: string;
}

/** What is wrong with a list, and the first bad lines where it is lines. */
export class ListFault extends Error {
  readonly lines: BadLine[];

  constructor(message: string, lines: BadLine[] = []) {
    super(message);
    this.lines = lines;
  }
}

/** That one import takes. */
export const maxImported = 100_000;

const maxNamed = 5;
/** A list whose addresses are repeated more often than this, on average, is not read to its end. */
const maxRepeats = 4;
/** A list with more bad lines than this is not read to its end. */
const maxBad = 100;
const maxNamedLength = 80;
/** A quote that is never closed would make a record of all that follows. */
const maxRecordLength = 16_384;

const form = {
  bom: true,
  delimiter: [',', ';', '\t'],
  ltrim: true,
  comment: '#',
  comment_no_infix: true,
  skip_empty_lines: true,
  relax_column_count: true,
  relax_quotes: true,
  info: true,
  max_record_size: maxRecordLength,
};

/**
 * The addresses, the first of each that compare as the same. More than `most` of them are a fault: reading stops there, or
 * after a hundred bad lines, so that the work is bounded by `most` and not by the size of the list.
 */
export async function readAddresses(bytes: Buffer, max = Number.POSITIVE_INFINITY): Promise<string[]> {
  const list = createList(max);
  await pipeline(Readable.from(slices(bytes)), parse(form), async (records: AsyncIterable<Line>) => {
    for await (const { record, info } of records)
      list.take(unescapeFormula(unquote(record[0] ?? '')), info.lines);
  }).catch((error) => {
    throw error instanceof CsvError ? new ListFault(wordsOf(error)) : error;
  });
  return list.end();
}

function createList(max: number) {
  const byKey = new Map<string, string>();
  const bad: BadLine[] = [];
  let badCount = 0;
  let addressCount = 0;
  let isBegun = false;

  function note(text: string, line: number): void {
    badCount += 1;
    if (bad.length < maxNamed) bad.push({ line, text: text.slice(0, maxNamedLength) });
    if (badCount > maxBad) throw fault();
  }

  function fault(): ListFault {
    const named = bad.map(({ line, text }) => `line ${line} (${JSON.stringify(text)})`).join(', ');
    const more = badCount - bad.length;
    const rest = badCount > maxBad ? ` and at least ${more} more` : ` and ${more} more`;
    return new ListFault(`no email address in ${named}${more > 0 ? rest : ''}`, bad);
  }

  return {
    take(text: string, line: number): void {
      if (text === '') return;
      const isHead = !isBegun && !text.includes('@');
      isBegun = true;
      if (isHead) return;
      const isAddress = domainOf(text) !== null && !text.includes(undecodable);
      if (!isAddress) {
        note(text, line);
        return;
      }
      addressCount += 1;
      const key = compareKey(text);
      if (!byKey.has(key)) byKey.set(key, text);
      if (byKey.size > max || addressCount > max * maxRepeats)
        throw new ListFault(`the list has more than ${max} addresses; split it into several lists`);
    },
    end(): string[] {
      if (badCount > 0) throw fault();
      return [...byKey.values()];
    },
  };
}

interface Line {
  record: string[];
  info: { lines: number };
}

/** Quotes with something between them and the comma are no quotes to the parser; no address ends in one. */
function unquote(text: string): string {
  return text.trim().replace(/^"(.*)"$/, '$1');
}

/** What stands for bytes that are not UTF-8. */
const undecodable = '\uFFFD';

const sliceLength = 16_384;

/** Others have their turn between two. */
async function* slices(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let start = 0; start < bytes.length; start += sliceLength) {
    yield bytes.subarray(start, start + sliceLength);
    await turn();
  }
}

function wordsOf({ code, message, lines }: CsvError & { lines?: number }): string {
  const isQuote = code === 'CSV_QUOTE_NOT_CLOSED' || code === 'CSV_MAX_RECORD_SIZE';
  return isQuote ? `a quote before line ${lines} is never closed, or a line is too long` : message;
}

export const csvHead = csv([['address', 'reason', 'createdAt']]);
const pageSize = 500;

/** An organization's list, page by page as it is taken. */
export async function* csvPages(db: Db, orgId: string): AsyncGenerator<string> {
  yield csvHead;
  for (let after: string | null = null; ; ) {
    const page = await pageOfSuppressions(db, { orgId, after, limit: pageSize });
    if (page.length > 0) yield csvOf(page);
    if (page.length < pageSize) return;
    after = page.at(-1)!.addressKey;
  }
}

export function csvOf(list: Suppression[]): string {
  return csv(
    list.map(({ address, reason, createdAt }) => [
      escapeFormula(address),
      escapeFormula(reason),
      iso(createdAt),
    ]),
  );
}

function csv(rows: string[][]): string {
  return stringify(rows, { quoted_string: true, record_delimiter: 'windows' });
}

/** What makes a formula of a cell. */
const formula = /^'*[=+\-@\t\r]/;

function escapeFormula(text: string): string {
  return formula.test(text) ? `'${text}` : text;
}

function unescapeFormula(text: string): string {
  return text.startsWith("'") && formula.test(text) ? text.slice(1) : text;
}
