/**
 * The written forms of settings that speak of time: one duration (`48h`), the waits between attempts
 * (`30s 2m 4h*12`) and the patience of an SMTP conversation (`connect=30s dot=10m`). All in milliseconds.
 */
import ms, { type StringValue } from 'ms';
import { type Grammar, refuse, wordsOf } from './grammar.ts';

const longest = ms('365d');
const longestOfAll = ms('3650d');

const units = [
  ['h', ms('1h')],
  ['m', ms('1m')],
  ['s', ms('1s')],
  ['ms', 1],
] as const;

/** Null where the text is no duration. The unit is required: a bare 30 is 30 ms to one reader, 30 s to another. */
function readDuration(text: string, max = longest): number | null {
  if (!/^\d{1,9}(\.\d{1,3})?(ms|s|m|h|d)$/i.test(text)) return null;
  const value = ms(text as StringValue);
  return Number.isInteger(value) && value >= 1 && value <= max ? value : null;
}

/** In the largest unit that keeps the value whole; ms itself would round 90 s to 2m. */
function printDuration(value: number): string {
  const [unit, size] = units.find(([, each]) => value % each === 0) ?? ['ms', 1];
  return `${value / size}${unit}`;
}

export const duration: Grammar<number> = {
  read: (text) => readDuration(text) ?? refuse(text, 'a duration', 'one such as 30s, 2m or 48h, up to 365d'),
  print: printDuration,
};

export const longDuration: Grammar<number> = {
  read: (text) =>
    readDuration(text, longestOfAll) ?? refuse(text, 'a duration', 'one such as 90d or 730d, up to 3650d'),
  print: printDuration,
};

export const durationOrNone: Grammar<number> = {
  read(text) {
    if (text === '0') return 0;
    return readDuration(text) ?? refuse(text, 'a duration', 'one such as 30s, 2m or 48h, up to 365d, or 0');
  },
  print: (value) => (value === 0 ? '0' : printDuration(value)),
};

const maxRepeats = 1000;

function readWaits(word: string): number[] {
  const [, each = '', times = '1'] = /^([^*]+)(?:\*(\d{1,4}))?$/.exec(word) ?? [];
  const wait = readDuration(each);
  const count = Number(times);
  if (wait === null || count < 1 || count > maxRepeats) {
    return refuse(
      word,
      'a wait',
      `durations such as 30s 2m 1h, 4h*12 for twelve of them (${maxRepeats} at most)`,
    );
  }
  return Array<number>(count).fill(wait);
}

/** Consecutive equal waits share a word, as in the written form. */
function printWaits(waits: number[]): string {
  const runs: { wait: number; count: number }[] = [];
  for (const wait of waits) {
    const last = runs.at(-1);
    if (last?.wait === wait) last.count += 1;
    else runs.push({ wait, count: 1 });
  }
  return runs.map(({ wait, count }) => printDuration(wait) + (count > 1 ? `*${count}` : '')).join(' ');
}

export const retryWaits: Grammar<number[]> = {
  read(text) {
    const waits = wordsOf(text).flatMap(readWaits);
    return waits.length > 0 ? waits : refuse(text, 'a list of waits', 'durations such as 30s 2m 1h');
  },
  print: printWaits,
  list: true,
};

/**
 * How long each step of a conversation may take. RFC 5321 4.5.3.2 asks for 5 minutes at the greeting, MAIL and
 * RCPT, 2 at DATA, 3 for each block and 10 after the final dot; on connecting, EHLO and the TLS handshake it is
 * silent. Hosts that answer at all today answer in seconds and the queue tries again, so the steps up to DATA
 * wait less. The dot keeps its 10 minutes: to hang up early there is to deliver the message twice.
 */
export interface Timeouts {
  connect: number;
  greeting: number;
  ehlo: number;
  tls: number;
  mail: number;
  rcpt: number;
  data: number;
  dot: number;
}

export const defaultTimeouts: Readonly<Timeouts> = {
  connect: ms('30s'),
  greeting: ms('1m'),
  ehlo: ms('1m'),
  tls: ms('30s'),
  mail: ms('2m'),
  rcpt: ms('2m'),
  data: ms('2m'),
  dot: ms('10m'),
};

const phases = Object.keys(defaultTimeouts) as (keyof Timeouts)[];

/** A socket's timer keeps 31 bits of milliseconds and fires at once beyond them. */
const longestTimeout = ms('1d');

function readTimeout(word: string): [keyof Timeouts, number] {
  const [, name, text = ''] = /^(\w+)=(.+)$/.exec(word) ?? [];
  const phase = phases.find((each) => each === name?.toLowerCase());
  const value = readDuration(text);
  if (phase === undefined || value === null || value > longestTimeout) {
    const give = `PHASE=DURATION, such as connect=30s, up to 1d; the phases are ${phases.join(', ')}`;
    return refuse(word, 'a timeout', give);
  }
  return [phase, value];
}

export const timeouts: Grammar<Timeouts> = {
  read: (text) => ({ ...defaultTimeouts, ...Object.fromEntries(wordsOf(text).map(readTimeout)) }),
  print: (value) => phases.map((phase) => `${phase}=${printDuration(value[phase])}`).join(' '),
  list: true,
};
