/**
 * What the commands say, in one of three forms: one JSON document (--json), tables and colour (a terminal), plain
 * lines parted by tabs, times in ISO 8601 (a pipe). Standard output carries the result alone; notes and complaints
 * go to standard error. Colour honours NO_COLOR.
 *
 * Much of what is shown was written by strangers (remote replies, subjects): control characters come out visible,
 * so that none of it can move the terminal's cursor or break a line in two.
 */
import { stripVTControlCharacters, styleText } from 'node:util';
import Table from 'cli-table3';
import { iso } from '../clock.ts';
import { local, relative } from './times.ts';

/** A time is relative on a terminal; a state has a colour; null is not known, or nothing. */
export type Cell = string | number | null | { time: number | null } | { state: string };

export type Block =
  /**
   * `empty` is said on a terminal where there are no rows. `cut`: where a line would not fit, its last column is cut,
   * the talkative one. `kind` begins each line in a pipe, where others follow with other columns.
   */
  | { head: string[]; rows: Cell[][]; empty: string; cut?: true; kind?: string }
  | { facts: [name: string, value: Cell][] }
  /** Where a table would not do: lines for a terminal, rows for a pipe. */
  | { lines: string[]; rows: Cell[][] };

export interface Output {
  json: boolean;
  readonly terminal: boolean;
  /** `document` is what --json prints, `blocks` the same for people and pipes. */
  print(document: unknown, ...blocks: Block[]): void;
  /** Bytes as they are. */
  write(bytes: string | Uint8Array): void;
  /** A courtesy to somebody who sits there; scripts do not get it. */
  note(text: string): void;
  /** What must be known, whoever reads. */
  warn(text: string): void;
}

const usualColumns = 80;

export interface Streams {
  stdout: NodeJS.WriteStream;
  stderr: NodeJS.WriteStream;
}

export function createOutput({ stdout, stderr }: Streams, now: () => number): Output {
  const terminal = stdout.isTTY === true;
  const output: Output = {
    json: false,
    terminal,
    print(document, ...blocks) {
      if (output.json) return output.write(`${JSON.stringify(document, null, 2)}\n`);
      if (!terminal) return output.write(blocks.map(asPlain).join(''));
      const shown = blocks.map((block) => forTerminal(block, now(), stdout.columns ?? usualColumns));
      output.write(`${shown.filter((text) => text !== '').join('\n\n')}\n`);
    },
    write(bytes) {
      stdout.write(bytes);
    },
    note(text) {
      if (stderr.isTTY) output.warn(text);
    },
    warn(text) {
      stderr.write(`postern: ${clean(text)}\n`);
    },
  };
  return output;
}

/** Control characters made visible. */
export function clean(text: string): string {
  return text.replace(/\p{Cc}/gu, (each) => `\\x${each.charCodeAt(0).toString(16).padStart(2, '0')}`);
}

export function dim(text: string): string {
  return styleText('dim', text);
}

function asPlain(block: Block): string {
  const rows = 'facts' in block ? block.facts : block.rows;
  const kind = 'kind' in block ? [block.kind!] : [];
  return rows
    .map((row) => [...kind, ...row])
    .map((row) => `${row.map(plainCell).join('\t')}\n`)
    .join('');
}

function plainCell(cell: Cell): string {
  if (cell === null) return '-';
  if (typeof cell !== 'object') return clean(String(cell).replace(/\s+/g, ' ')) || '-';
  if ('state' in cell) return cell.state;
  return cell.time === null ? '-' : iso(cell.time);
}

function forTerminal(block: Block, now: number, columns: number): string {
  if ('lines' in block) return block.lines.join('\n');
  if ('facts' in block) return factLines(block.facts, now);
  if (block.rows.length === 0) return dim(block.empty);
  return tableLines(block, now, columns);
}

type Rows = Extract<Block, { head: string[] }>;

function factLines(facts: [string, Cell][], now: number): string {
  const width = Math.max(...facts.map(([name]) => name.length));
  return facts.map(([name, value]) => `${dim(name.padEnd(width))}  ${factCell(value, now)}`).join('\n');
}

/** One thing has the room to say when exactly. */
function factCell(cell: Cell, now: number): string {
  const isTime = typeof cell === 'object' && cell !== null && 'time' in cell && cell.time !== null;
  return isTime ? `${local(cell.time!)} ${dim(`(${relative(cell.time!, now)})`)}` : terminalCell(cell, now);
}

function terminalCell(cell: Cell, now: number): string {
  if (cell === null) return dim('-');
  if (typeof cell !== 'object') return clean(String(cell)) || dim('-');
  if ('state' in cell) return coloured(cell.state);
  return cell.time === null ? dim('-') : relative(cell.time, now);
}

const colours: Record<string, 'green' | 'yellow' | 'red' | 'cyan'> = {
  ...{ accepted: 'cyan', queued: 'cyan', sending: 'cyan', attempted: 'cyan', processing: 'cyan' },
  ...{ delivered: 'green', verified: 'green', active: 'green', found: 'green' },
  ...{ deferred: 'yellow', held: 'yellow', pending: 'yellow', suppressed: 'yellow', missing: 'yellow' },
  ...{ bounced: 'red', complained: 'red', expired: 'red', failed: 'red', revoked: 'red' },
  ...{ partially_delivered: 'yellow', insufficient_credit: 'red', canceled: 'yellow', unknown: 'yellow' },
};

export function coloured(state: string): string {
  const colour = colours[state];
  return colour ? styleText(colour, state) : state;
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

function tableLines({ head, rows, cut }: Rows, now: number, columns: number): string {
  const cells = rows.map((row) => row.map((cell) => terminalCell(cell, now)));
  const table = new Table({
    head: head.map((name) => styleText('bold', name)),
    chars: noLines,
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0, compact: true },
    colAligns: head.map((_, at) => (rows.every((row) => typeof row[at] === 'number') ? 'right' : 'left')),
    colWidths: cut ? widthsWithin(columns, head, cells) : [],
  });
  table.push(...cells);
  return table.toString().replace(/ +$/gm, '');
}

const leastRoom = 20;

function widthsWithin(columns: number, head: string[], cells: string[][]): number[] {
  const widthOf = (text: string) => stripVTControlCharacters(text).length;
  const widths = head.map((name, at) => Math.max(name.length, ...cells.map((row) => widthOf(row[at]!))));
  const before = widths.slice(0, -1).reduce((sum, width) => sum + width + noLines.middle.length, 0);
  return widths.with(-1, Math.min(widths.at(-1)!, Math.max(columns - before, leastRoom)));
}
