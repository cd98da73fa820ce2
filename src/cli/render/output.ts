/**
 * The output of a command, in one of three forms: one JSON document (--json), tables and colour (a terminal), or lines of
 * fields separated by tabs, with times in ISO 8601 (a pipe). Only the result goes to standard output; notes, warnings and
 * progress go to standard error. Colour honours NO_COLOR.
 *
 * Much of it was written by strangers (SMTP replies, subjects): control characters are shown, so that none of them moves
 * the terminal's cursor or breaks a line in two.
 */

import { sanitize, sanitizeJson } from '#platform/base/sanitize.ts';
import { relative } from '#platform/base/span.ts';
import { type Cell, dim, plainCell, terminalCell } from './cells.ts';
import { type Rows, tableLines } from './table.ts';
import { local } from './times.ts';
import { cut, wrap } from './width.ts';

export { sanitize } from '#platform/base/sanitize.ts';
export type { Cell } from './cells.ts';
export { coloured, dim } from './cells.ts';

export type OutputBlock =
  | Rows
  /** One line each: a name and its value. */
  | { fields: Record<string, Cell> }
  /** Lines for a terminal, rows for a pipe. */
  | { lines: string[]; rows: Cell[][] };

export interface Output {
  json: boolean;
  readonly terminal: boolean;
  /** The current width of the terminal. */
  readonly columns: number;
  /** Infinite if the height of the terminal is not known. */
  readonly rows: number;
  /** Prints `document` with --json, otherwise `blocks`, which say the same. */
  print(document: unknown, ...blocks: OutputBlock[]): void;
  /** Writes to standard output, unchanged. */
  write(bytes: string | Uint8Array): void;
  /** A hint for a person at a terminal; not printed to a pipe. */
  note(text: string): void;
  /** The progress of long work, on a terminal only: one line, which the next output of any kind replaces. */
  progress(text: string): void;
  /** Printed to standard error in any case. */
  warn(text: string): void;
}

const defaultColumns = 80;

export interface OutputStreams {
  stdout: NodeJS.WriteStream;
  stderr: NodeJS.WriteStream;
}

export function createOutput({ stdout, stderr }: OutputStreams, now: () => number): Output {
  const terminal = stdout.isTTY === true;
  let hasProgress = false;
  const output: Output = {
    json: false,
    terminal,
    get columns() {
      return stdout.columns || defaultColumns;
    },
    get rows() {
      return stdout.rows || Number.POSITIVE_INFINITY;
    },
    print(document, ...blocks) {
      if (output.json) return output.write(`${sanitizeJson(JSON.stringify(document, null, 2))}\n`);
      if (!terminal) return output.write(blocks.map(asPlain).join(''));
      const shown = blocks.map((block) => forTerminal(block, now(), output.columns));
      output.write(`${shown.filter((text) => text !== '').join('\n\n')}\n`);
    },
    write(bytes) {
      output.progress('');
      stdout.write(bytes);
    },
    note(text) {
      if (stderr.isTTY) output.warn(text);
    },
    progress(text) {
      if (!stderr.isTTY || (text === '' && !hasProgress)) return;
      hasProgress = text !== '';
      // A line that the terminal breaks in two could not be replaced.
      stderr.write(`\r\x1b[K${cut(text, (stderr.columns || defaultColumns) - 1)}`);
    },
    warn(text) {
      output.progress('');
      const line = `postern: ${sanitize(text)}`;
      const lines = stderr.isTTY ? wrap(line.split(' '), stderr.columns || defaultColumns) : [line];
      stderr.write(`${lines.join('\n')}\n`);
    },
  };
  return output;
}

function asPlain(block: OutputBlock): string {
  const rows = 'fields' in block ? Object.entries(block.fields) : block.rows;
  const kind = 'kind' in block ? [block.kind!] : [];
  const below = 'below' in block ? block.below!.rows : [];
  return rows
    .map((row, at) => [...kind, ...row, ...(below[at] ?? [])])
    .map((row) => `${row.map(plainCell).join('\t')}\n`)
    .join('');
}

function forTerminal(block: OutputBlock, now: number, columns: number): string {
  if ('lines' in block) return block.lines.map(safeLines).join('\n');
  if ('fields' in block) return fieldLines(Object.entries(block.fields), now, columns);
  if (block.rows.length === 0) return dim(block.empty);
  return tableLines(block, now, columns);
}

/** Our own breaks and styles. */
const own = /(\n|\x1b\[\d{1,2}m)/;

/** Strangers' words may contain breaks and styles, too: the callers escape those. All other control characters are escaped here. */
function safeLines(text: string): string {
  return text
    .split(own)
    .map((part, at) => (at % 2 === 0 ? sanitize(part) : part))
    .join('');
}

function fieldLines(fields: [string, Cell][], now: number, columns: number): string {
  const width = Math.max(...fields.map(([name]) => name.length));
  const indent = `\n${' '.repeat(width + 2)}`;
  return fields
    .map(([name, value]) => {
      const lines = wrap(fieldCell(value, now).split(' '), columns - width - 2);
      return `${dim(name.padEnd(width))}  ${lines.join(indent)}`;
    })
    .join('\n');
}

/** A fact has room for the exact time. */
function fieldCell(cell: Cell, now: number): string {
  const isTime = typeof cell === 'object' && cell !== null && 'time' in cell && cell.time !== null;
  if (!isTime) return terminalCell(cell, now);
  const time = cell.past ? Math.min(cell.time!, now) : cell.time!;
  return `${local(time)} ${dim(`(${relative(time, now)})`)}`;
}
