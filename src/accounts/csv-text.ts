/**
 * CSV (RFC 4180) that a spreadsheet opens as text. Spreadsheets take some texts for formulas; such a cell is written with a
 * leading apostrophe, as OWASP recommends. A cell that already has such an apostrophe gets another, so that each can be read
 * back.
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

const formula = /^'*[=+\-@\t\r]/;

function escapeFormula(text: string): string {
  return formula.test(text) ? `'${text}` : text;
}

export function unescapeFormula(text: string): string {
  return text.startsWith("'") && formula.test(text) ? text.slice(1) : text;
}
