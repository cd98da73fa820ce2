/**
 * CSV (RFC 4180) that a spreadsheet opens as text. Spreadsheets take some texts for formulas; such a cell is written with a
 * leading apostrophe, as OWASP recommends, and so is a part of it that is a cell where semicolons or tabs separate them. A text
 * that already has such an apostrophe gets another, so that each can be read back.
 */
import { Readable } from 'node:stream';
import { stringify } from 'csv-stringify/sync';

export function csvText(rows: string[][]): string {
  const safe = rows.map((row) => row.map(escapeFormula));
  return stringify(safe, { quoted_string: true, record_delimiter: 'windows' });
}

/** Reads page by page as fast as the client takes it, so that memory holds one page. */
export function csvStreamOf(pages: AsyncGenerator<string>): Readable {
  return Readable.from(pages, { objectMode: false, highWaterMark: 1 });
}

/** The signs that begin a formula, also as full-width characters, at the beginning of a cell. */
const formula = /(^|[;\t\r\n])(?=[ '"]*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20])/g;
const escaped = /(^|[;\t\r\n])'(?=[ '"]*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20])/g;

function escapeFormula(text: string): string {
  return text.replace(formula, "$1'");
}

export function unescapeFormula(text: string): string {
  return text.replace(escaped, '$1');
}
