/**
 * Single values as the commands show them: plain for a pipe, short and coloured for a terminal. Colour honours
 * NO_COLOR; control characters come out visible.
 */
import { styleText } from 'node:util';
import { iso } from '../clock.ts';
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

/** Control characters made visible. */
export function clean(text: string): string {
  return text.replace(/\p{Cc}/gu, (each) => `\\x${each.charCodeAt(0).toString(16).padStart(2, '0')}`);
}

export function dim(text: string): string {
  return styleText('dim', text);
}

export function plainCell(cell: Cell): string {
  if (cell === null) return '-';
  if (typeof cell !== 'object') return clean(String(cell).replace(/\s+/g, ' ')) || '-';
  if ('state' in cell) return cell.state;
  if ('count' in cell) return String(cell.count);
  return cell.time === null ? '-' : iso(cell.time);
}

export function terminalCell(cell: Cell, now: number): string {
  if (cell === null) return dim('-');
  if (typeof cell !== 'object') return clean(String(cell)) || dim('-');
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
  ...{ bounced: 'red', complained: 'red', expired: 'red', failed: 'red', revoked: 'red', disabled: 'red' },
  ...{ partially_delivered: 'yellow', insufficient_credit: 'red', canceled: 'yellow', unknown: 'yellow' },
};

export function coloured(state: string): string {
  const colour = colours[state];
  return colour ? styleText(colour, state) : state;
}
