/** Single values: plain for a pipe, short and coloured for a terminal. Control characters are shown, not sent. */
import { styleText } from 'node:util';
import { iso } from '#platform/base/clock.ts';
import { sanitize } from '#platform/base/sanitize.ts';
import { ago, relative } from '#platform/base/span.ts';
import { timeOfDay } from './times.ts';

/**
 * Null is shown as "-". On a terminal a time is relative, a count is short, and a state has a colour. `past`: a time that
 * lies in the future, because a clock was ahead, is now.
 */
export type Cell =
  | string
  | number
  | null
  | { time: number | null; due?: boolean; past?: boolean }
  | { count: number }
  /** In a table that does not fit a terminal, only its end is shown, which all commands take. */
  | { id: string }
  | { state: string };

export function dim(text: string): string {
  return styleText('dim', text);
}

export function plainCell(cell: Cell): string {
  if (cell === null) return '-';
  if (typeof cell !== 'object') return sanitize(String(cell).replace(/\s+/g, ' ')) || '-';
  if ('state' in cell) return cell.state;
  if ('count' in cell) return String(cell.count);
  if ('id' in cell) return sanitize(cell.id);
  return cell.time === null ? '-' : iso(cell.time);
}

export function terminalCell(cell: Cell, now: number): string {
  if (cell === null) return dim('-');
  if (typeof cell !== 'object') return sanitize(String(cell)) || dim('-');
  if ('state' in cell) return coloured(cell.state);
  if ('count' in cell) return cell.count === 0 ? dim('0') : compact(cell.count);
  if ('id' in cell) return sanitize(cell.id);
  if (cell.time === null) return dim('-');
  if (cell.due) return `due since ${timeOfDay(cell.time, now)}`;
  return cell.past ? ago(cell.time, now) : relative(cell.time, now);
}

/** 1.2K, 15K, 1M: at most four characters for numbers below a billion. */
const compact = new Intl.NumberFormat('en', { notation: 'compact' }).format;

/** 1,234,567 */
export const grouped = new Intl.NumberFormat('en').format;

const statesByColour = {
  cyan: 'accepted queued sending attempted processing',
  green: 'delivered verified active found signing',
  yellow: 'deferred held pending suppressed missing ending retired partially_delivered canceled unknown',
  red: 'bounced complained ended expired failed revoked disabled insufficient_credit',
};

type Colour = keyof typeof statesByColour;

const colours = new Map(
  Object.entries(statesByColour).flatMap(([colour, states]) =>
    states.split(' ').map((state) => [state, colour as Colour]),
  ),
);

/** `text` in the colour of `state`. */
export function coloured(state: string, text = state): string {
  const colour = colours.get(state);
  return colour ? styleText(colour, text) : text;
}
