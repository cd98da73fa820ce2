/** Tables for a terminal: columns in line, cut where a line would not fit, and lines under a row for what has no room. */
import { stripVTControlCharacters, styleText } from 'node:util';
import Table from 'cli-table3';
import { type Cell, dim, terminalCell } from './cells.ts';

/**
 * `empty` is said on a terminal where there are no rows. `cut`: where a line would not fit, its first or last column
 * is cut, the talkative one. `kind` begins each line in a pipe, where others follow with other columns. `below`: more
 * columns, which stand under each row on a terminal, and at its end in a pipe.
 */
export interface Rows {
  head: string[];
  rows: Cell[][];
  empty: string;
  cut?: 'first' | 'last';
  kind?: string;
  below?: { head: string[]; rows: Cell[][] };
}

const noLines = {
  ...{
    top: '',
    'top-mid': '',
    'top-left': '',
    'top-right': '',
    left: '',
    'left-mid': '',
    mid: '',
    'mid-mid': '',
  },
  ...{ right: '', 'right-mid': '', bottom: '', 'bottom-mid': '', 'bottom-left': '', 'bottom-right': '' },
  middle: '  ',
};

export function tableLines({ head, rows, cut, below }: Rows, now: number, columns: number): string {
  const cells = rows.map((row) => row.map((cell) => terminalCell(cell, now)));
  const table = new Table({
    head: head.map((name) => styleText('bold', name)),
    chars: noLines,
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0, compact: true },
    colAligns: head.map((_, at) => (rows.every((row) => isNumber(row[at]!)) ? 'right' : 'left')),
    colWidths: cut ? widthsWithin(columns, head, cells, cut) : [],
  });
  table.push(...cells);
  const [first, ...lines] = table.toString().replace(/ +$/gm, '').split('\n');
  if (!below) return [first, ...lines].join('\n');
  const under = below.rows.map((row) => lineBelow(below.head, row, now, columns));
  return [first, ...lines.flatMap((line, at) => [line, under[at]!])].join('\n');
}

function isNumber(cell: Cell): boolean {
  return typeof cell === 'number' || (typeof cell === 'object' && cell !== null && 'count' in cell);
}

/** `  circuit open; oldest 3 m ago; next in 5 m`: what is not known is left out, what does not fit is cut. */
function lineBelow(head: string[], row: Cell[], now: number, columns: number): string {
  const parts = row.flatMap((cell, at) => {
    const isKnown = typeof cell !== 'object' || (cell !== null && !('time' in cell && cell.time === null));
    const isDue = typeof cell === 'object' && cell !== null && 'due' in cell && cell.due;
    const said = stripVTControlCharacters(terminalCell(cell, now));
    return isKnown ? [`${isDue ? '' : head[at]} ${said}`.trim()] : [];
  });
  const line = `  ${parts.join('; ')}`;
  return dim(line.length > columns ? `${line.slice(0, columns - 1)}…` : line);
}

const minRoom = 20;

function widthsWithin(columns: number, head: string[], cells: string[][], cut: 'first' | 'last'): number[] {
  const widthOf = (text: string) => stripVTControlCharacters(text).length;
  const widths = head.map((name, at) => Math.max(name.length, ...cells.map((row) => widthOf(row[at]!))));
  const at = cut === 'first' ? 0 : -1;
  const all = widths.reduce((sum, width) => sum + width + noLines.middle.length, -noLines.middle.length);
  const others = all - widths.at(at)!;
  return widths.with(at, Math.min(widths.at(at)!, Math.max(columns - others, minRoom)));
}
