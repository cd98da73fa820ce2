/** Tables for a terminal: aligned columns, one of them cut to the width of the terminal, and details below each row. */
import { stripVTControlCharacters, styleText } from 'node:util';
import stringWidth from 'string-width';
import { endOf } from '#cli/maillog/log-filter.ts';
import { type Cell, dim, terminalCell } from './cells.ts';
import { timeOfDay } from './times.ts';
import { cut, fit, wrap } from './width.ts';

export interface Rows {
  head: string[];
  rows: Cell[][];
  /** Printed on a terminal if there are no rows. */
  empty: string;
  /** The column that is cut if a line does not fit. */
  cut?: 'first' | 'last';
  /** In a pipe, the first field of each line; it tells these rows from those of other tables. */
  kind?: string;
  /** More columns: on a terminal a line below each row, in a pipe fields at its end. */
  below?: { head: string[]; rows: Cell[][] };
}

const gap = '  ';
const minCutWidth = 20;
const minOtherWidth = 12;

export function tableLines(table: Rows, now: number, columns: number): string {
  const { head, rows, below } = table;
  const title = head.map((name) => styleText('bold', name));
  const whole = [title, ...rows.map((row) => row.map((cell) => terminalCell(cell, now)))];
  const cells =
    sumOf(ownWidths(whole)) <= columns
      ? whole
      : [title, ...rows.map((row) => row.map((cell) => terminalCell(shortened(cell, now), now)))];
  const widths = widthsWithin(columns, cells, table.cut);
  const aligns = head.map((_, at) => (rows.every((row) => isNumber(row[at]!)) ? 'right' : 'left'));
  const [first, ...lines] = cells.map((row) =>
    row
      .map((cell, at) => fit(cell, widths[at]!, aligns[at]))
      .join(gap)
      .trimEnd(),
  );
  const detail = (at: number) => (below ? [lineBelow(below.head, below.rows[at]!, now, columns)] : []);
  return [first, ...lines.flatMap((line, at) => [line, ...detail(at)])].join('\n');
}

function isNumber(cell: Cell): boolean {
  return typeof cell === 'number' || (typeof cell === 'object' && cell !== null && 'count' in cell);
}

/** `  circuit open; oldest 3 minutes ago; next in 5 minutes`: unknown values are left out. */
function lineBelow(head: string[], row: Cell[], now: number, columns: number): string {
  const parts = row.flatMap((cell, at) => {
    const isKnown = typeof cell !== 'object' || (cell !== null && !('time' in cell && cell.time === null));
    const isDue = typeof cell === 'object' && cell !== null && 'due' in cell && cell.due;
    const text = stripVTControlCharacters(terminalCell(cell, now));
    return isKnown ? [`${isDue ? '' : head[at]} ${text}`.trim()] : [];
  });
  const lines = wrap(parts.join('; ').split(' '), columns - 2);
  return lines.map((line) => dim(cut(`  ${line}`, columns))).join('\n');
}

/** The same, if there is little room. */
function shortened(cell: Cell, now: number): Cell {
  if (typeof cell !== 'object' || cell === null) return cell;
  if ('id' in cell) return endOf(cell.id);
  return 'time' in cell && cell.due && cell.time !== null ? `due ${timeOfDay(cell.time, now)}` : cell;
}

function ownWidths(cells: string[][]): number[] {
  return cells[0]!.map((_, at) => cells.reduce((max, row) => Math.max(max, stringWidth(row[at]!)), 0));
}

function sumOf(widths: number[]): number {
  return widths.reduce((sum, width) => sum + width + gap.length, -gap.length);
}

/** First the column that may be cut, then the widest others, so that the terminal breaks no line. */
function widthsWithin(columns: number, cells: string[][], cutColumn: Rows['cut']): number[] {
  let widths = ownWidths(cells);
  if (!cutColumn) return widths;
  const at = cutColumn === 'first' ? 0 : widths.length - 1;
  const own = widths[at]!;
  widths = widths.with(at, Math.min(own, Math.max(columns - sumOf(widths) + own, minCutWidth)));
  for (let over = sumOf(widths) - columns; over > 0; over = sumOf(widths) - columns) {
    const widest = widths.indexOf(Math.max(...widths));
    if (widths[widest]! <= minOtherWidth) return widths;
    widths = widths.with(widest, Math.max(widths[widest]! - over, minOtherWidth));
  }
  return widths;
}
