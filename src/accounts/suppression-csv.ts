/**
 * Reads and writes suppression lists as CSV.
 *
 * Reading takes the addresses of the first column, with or without a header line; a plain list with one address per line is
 * valid, too. Empty lines and # comments are skipped. Lines without an address are left out and named by their numbers.
 * `=cmd…@example.org` is a valid address (RFC 5321), so reading removes the apostrophe of csv-text.ts.
 */
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setImmediate as turn } from 'node:timers/promises';
import { CsvError, parse } from 'csv-parse';
import { pageOfSuppressions, type Suppression } from '#accounts/rows/suppressions.ts';
import { iso } from '#platform/base/clock.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { compareKey, domainOf } from '#platform/values/address.ts';
import { trimBlanks, withHiddenNamed } from '#platform/values/hidden-characters.ts';
import { csvText, unescapeFormula } from './csv-text.ts';

export interface BadLine {
  line: number;
  /** The text that is not an address, shortened, its hidden characters named. */
  text: string;
}

/** The list cannot be used. `lines`: its first bad lines, if that is why. */
export class ListError extends Error {
  readonly lines: BadLine[];

  constructor(message: string, lines: BadLine[] = []) {
    super(message);
    this.lines = lines;
  }
}

export interface ImportedAddresses {
  /** Without duplicates. */
  addresses: string[];
  /** The number of lines without an address, and the first of them. */
  rejected: number;
  rejectedLines: BadLine[];
}

/** Addresses in one import. */
export const maxImported = 100_000;

const maxNamed = 5;
const maxListed = 100;
/** A list whose addresses are repeated more often than this, on average, is not read to its end. */
const maxRepeats = 4;
/** A list that has so many more bad lines than addresses is none, and is not read to its end. */
const maxMoreBad = 1000;
const maxNamedLength = 80;
/** Without this limit, an unclosed quote would make one record of the rest of the list. */
const maxRecordLength = 16_384;

const csvOptions = {
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
 * Reading stops with an error after `max` addresses, or if far more lines are bad than good, so that the work is bounded by `max`
 * and not by the size of the list. A list of bad lines only is an error, too.
 */
export async function readAddresses(
  bytes: Buffer,
  max = Number.POSITIVE_INFINITY,
): Promise<ImportedAddresses> {
  const list = createList(max);
  await pipeline(
    Readable.from(slices(bytes)),
    parse(csvOptions),
    async (records: AsyncIterable<ParsedLine>) => {
      for await (const { record, info } of records)
        list.addCell(unescapeFormula(unquote(record[0] ?? '')), info.lines);
    },
  ).catch((error) => {
    throw error instanceof CsvError ? new ListError(describeError(error)) : error;
  });
  return list.end();
}

function createList(max: number) {
  const byKey = new Map<string, string>();
  const bad: BadLine[] = [];
  let badCount = 0;
  let addressCount = 0;
  let isBegun = false;

  function addBad(text: string, line: number): void {
    badCount += 1;
    if (bad.length < maxListed) bad.push({ line, text: withHiddenNamed(text.slice(0, maxNamedLength)) });
    if (badCount > maxMoreBad + addressCount) throw listError(true);
  }

  const listError = (isCut: boolean) =>
    new ListError(`no email address in ${linesText({ rejected: badCount, rejectedLines: bad }, isCut)}`, bad);

  return {
    addCell(text: string, line: number): void {
      if (text === '') return;
      const isHead = !isBegun && !text.includes('@');
      isBegun = true;
      if (isHead) return;
      if (domainOf(text) === null) {
        addBad(text, line);
        return;
      }
      addressCount += 1;
      const key = compareKey(text);
      if (!byKey.has(key)) byKey.set(key, text);
      if (byKey.size > max || addressCount > max * maxRepeats)
        throw new ListError(`the list has more than ${max} addresses; split it into several lists`);
    },
    end(): ImportedAddresses {
      if (badCount > 0 && addressCount === 0) throw listError(false);
      return { addresses: [...byKey.values()], rejected: badCount, rejectedLines: bad };
    },
  };
}

/** The first of the lines, in words. `isCut`: there may be more. */
export function linesText(
  { rejected, rejectedLines }: Pick<ImportedAddresses, 'rejected' | 'rejectedLines'>,
  isCut = false,
): string {
  const shown = rejectedLines.slice(0, maxNamed);
  const named = shown.map(({ line, text }) => `line ${line} (${JSON.stringify(text)})`).join(', ');
  const more = rejected - shown.length;
  return more > 0 ? `${named} and ${isCut ? 'at least ' : ''}${more} more` : named;
}

interface ParsedLine {
  record: string[];
  info: { lines: number };
}

/**
 * The parser does not treat quotes as such if there is a space before the comma; no address ends in a quote. It takes the first
 * line's end for that of all, so a CR can be left of another one's.
 */
function unquote(text: string): string {
  return trimBlanks(trimBlanks(text.replace(/\r$/, '')).replace(/^"(.*)"$/, '$1'));
}

const sliceLength = 4_096;

/** Yields to other work between slices. */
async function* slices(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let start = 0; start < bytes.length; start += sliceLength) {
    yield bytes.subarray(start, start + sliceLength);
    await turn();
  }
}

function describeError({ code, message, lines }: CsvError & { lines?: number }): string {
  const isQuote = code === 'CSV_QUOTE_NOT_CLOSED' || code === 'CSV_MAX_RECORD_SIZE';
  return isQuote ? `a quote before line ${lines} is never closed, or a line is too long` : message;
}

export const csvHead = csvText([['address', 'reason', 'createdAt']]);
const pageSize = 500;

export async function* csvPages(db: Db, orgId: string, stream?: string): AsyncGenerator<string> {
  yield csvHead;
  for (let after: string | null = null; ; ) {
    const page = await pageOfSuppressions(db, { orgId, stream, after, limit: pageSize });
    if (page.length > 0) yield csvOf(page);
    if (page.length < pageSize) return;
    after = page.at(-1)!.addressKey;
  }
}

export function csvOf(list: Suppression[]): string {
  return csvText(list.map(({ address, reason, createdAt }) => [address, reason, iso(createdAt)]));
}
