/**
 * What the commands say, in one of three forms: one JSON document (--json), tables and colour (a terminal), plain
 * lines parted by tabs, times in ISO 8601 (a pipe). Standard output carries the result alone; notes and complaints
 * go to standard error. Colour honours NO_COLOR.
 *
 * Much of what is shown was written by strangers (remote replies, subjects): control characters come out visible,
 * so that none of it can move the terminal's cursor or break a line in two.
 */
import { sanitize, sanitizeJson } from '../../base/sanitize.ts';
import { type Cell, dim, plainCell, terminalCell } from './cells.ts';
import { type Rows, tableLines } from './table.ts';
import { local, relative } from './times.ts';

export { sanitize as clean } from '../../base/sanitize.ts';
export type { Cell } from './cells.ts';
export { coloured, dim } from './cells.ts';

export type Block =
  | Rows
  | { facts: [name: string, value: Cell][] }
  /** Where a table would not do: lines for a terminal, rows for a pipe. */
  | { lines: string[]; rows: Cell[][] };

export interface Output {
  json: boolean;
  readonly terminal: boolean;
  /** How wide the terminal is now. */
  readonly columns: number;
  /** `document` is what --json prints, `blocks` the same for people and pipes. */
  print(document: unknown, ...blocks: Block[]): void;
  /** Bytes as they are. */
  write(bytes: string | Uint8Array): void;
  /** A courtesy to somebody who sits there; scripts do not get it. */
  note(text: string): void;
  /** How far long work has come, in one line that the next one overwrites; to somebody who sits there. */
  progress(text: string): void;
  /** What must be known, whoever reads. */
  warn(text: string): void;
}

const defaultColumns = 80;

export interface OutputStreams {
  stdout: NodeJS.WriteStream;
  stderr: NodeJS.WriteStream;
}

export function createOutput({ stdout, stderr }: OutputStreams, now: () => number): Output {
  const terminal = stdout.isTTY === true;
  const output: Output = {
    json: false,
    terminal,
    get columns() {
      return stdout.columns || defaultColumns;
    },
    print(document, ...blocks) {
      if (output.json) return output.write(`${sanitizeJson(JSON.stringify(document, null, 2))}\n`);
      if (!terminal) return output.write(blocks.map(asPlain).join(''));
      const shown = blocks.map((block) => forTerminal(block, now(), output.columns));
      output.write(`${shown.filter((text) => text !== '').join('\n\n')}\n`);
    },
    write(bytes) {
      stdout.write(bytes);
    },
    note(text) {
      if (stderr.isTTY) output.warn(text);
    },
    progress(text) {
      if (stderr.isTTY) stderr.write(`\r\x1b[K${text}`);
    },
    warn(text) {
      stderr.write(`postern: ${sanitize(text)}\n`);
    },
  };
  return output;
}

function asPlain(block: Block): string {
  const rows = 'facts' in block ? block.facts : block.rows;
  const kind = 'kind' in block ? [block.kind!] : [];
  const below = 'below' in block ? block.below!.rows : [];
  return rows
    .map((row, at) => [...kind, ...row, ...(below[at] ?? [])])
    .map((row) => `${row.map(plainCell).join('\t')}\n`)
    .join('');
}

function forTerminal(block: Block, now: number, columns: number): string {
  if ('lines' in block) return block.lines.join('\n');
  if ('facts' in block) return factLines(block.facts, now);
  if (block.rows.length === 0) return dim(block.empty);
  return tableLines(block, now, columns);
}

function factLines(facts: [string, Cell][], now: number): string {
  const width = Math.max(...facts.map(([name]) => name.length));
  return facts.map(([name, value]) => `${dim(name.padEnd(width))}  ${factCell(value, now)}`).join('\n');
}

/** One thing has the room to say when exactly. */
function factCell(cell: Cell, now: number): string {
  const isTime = typeof cell === 'object' && cell !== null && 'time' in cell && cell.time !== null;
  return isTime ? `${local(cell.time!)} ${dim(`(${relative(cell.time!, now)})`)}` : terminalCell(cell, now);
}
