/**
 * Single values as the commands show them: plain for a pipe, short and coloured for a terminal. Colour honours
 * NO_COLOR; control characters come out visible.
 */
import { styleText } from 'node:util';
import { iso } from '../../base/clock.ts';
import { sanitize } from '../../base/sanitize.ts';
import { relative, timeOfDay } from './times.ts';

/**
 * A time is relative on a terminal, and `due` one is said to be past due; a count is short there; a state has a colour;
 * null is not known, or nothing.
 */
export type Cell =
  | string
  | number
  | null
  | { time: number | null; due?: boolean }
  | { count: number }
  | { state: string };

export function dim(text: string): string {
  return styleText('dim', text);
}

export function plainCell(cell: Cell): string {
  if (cell === null) return '-';
  if (typeof cell !== 'object') return sanitize(String(cell).replace(/\s+/g, ' ')) || '-';
  if ('state' in cell) return cell.state;
  if ('count' in cell) return String(cell.count);
  return cell.time === null ? '-' : iso(cell.time);
}

export function terminalCell(cell: Cell, now: number): string {
  if (cell === null) return dim('-');
  if (typeof cell !== 'object') return sanitize(String(cell)) || dim('-');
  if ('state' in cell) return coloured(cell.state);
  if ('count' in cell) return cell.count === 0 ? dim('0') : compact.format(cell.count);
  if (cell.time === null) return dim('-');
  return cell.due ? `due since ${timeOfDay(cell.time, now)}` : relative(cell.time, now);
}

/** 1.2K, 15K, 1M: four characters at most, up to a billion. */
const compact = new Intl.NumberFormat('en', { notation: 'compact' });

const colours: Record<string, 'green' | 'yellow' | 'red' | 'cyan'> = {
  ...{ accepted: 'cyan', queued: 'cyan', sending: 'cyan', attempted: 'cyan', processing: 'cyan' },
  ...{ delivered: 'green', verified: 'green', active: 'green', found: 'green' },
  ...{ deferred: 'yellow', held: 'yellow', pending: 'yellow', suppressed: 'yellow', missing: 'yellow' },
  ...{ ending: 'yellow', ended: 'red', retired: 'yellow', signing: 'green' },
  ...{ bounced: 'red', complained: 'red', expired: 'red', failed: 'red', revoked: 'red', disabled: 'red' },
  ...{ partially_delivered: 'yellow', insufficient_credit: 'red', canceled: 'yellow', unknown: 'yellow' },
};

/** A state, or other text in its colour. */
export function coloured(state: string, text = state): string {
  const colour = colours[state];
  return colour ? styleText(colour, text) : text;
}
