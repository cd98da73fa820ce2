/**
 * The written forms of times: a duration (`48h`), the delays between attempts (`30s 2m 4h*12`) and the timeouts of an SMTP
 * session (`connect=30s dot=10m`). All values are in milliseconds.
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

/** Null if the text is not a duration. The unit is required: one reader takes a bare 30 for 30 ms, another for 30 s. */
function readDuration(text: string, max = longest): number | null {
  if (!/^\d{1,9}(\.\d{1,3})? ?(ms|s|m|h|d|seconds?|minutes?|hours?|days?)$/i.test(text)) return null;
  const value = ms(text as StringValue);
  return Number.isInteger(value) && value >= 1 && value <= max ? value : null;
}

/** In the largest unit that keeps the value whole; ms itself would round 90 s to 2m. */
function printDuration(value: number): string {
  const [unit, size] = units.find(([, each]) => value % each === 0) ?? ['ms', 1];
  return `${value / size}${unit}`;
}

function durationUpTo(max: number, give: string): Grammar<number> {
  return {
    read: (text) => readDuration(text, max) ?? refuse(text, 'a duration', give),
    print: printDuration,
  };
}

export const duration = durationUpTo(longest, 'one such as 30s, 2m or 48h, up to 365d');
export const longDuration = durationUpTo(longestOfAll, 'one such as 90d or 730d, up to 3650d');

const positive = durationUpTo(longest, 'one such as 30s, 2m or 48h, up to 365d, or 0');

export const durationOrNone: Grammar<number> = {
  read: (text) => (text === '0' ? 0 : positive.read(text)),
  print: (value) => (value === 0 ? '0' : printDuration(value)),
};

const maxRepeats = 1000;

function readWaits(word: string): number[] {
  const [, each = '', times = '1'] = /^([^*]+)(?:\*(\d{1,4}))?$/.exec(word) ?? [];
  const wait = readDuration(each);
  const count = Number(times);
  if (wait === null || count < 1 || count > maxRepeats) {
    const give = `durations such as 30s 2m 1h, 4h*12 for twelve of them (${maxRepeats} at most)`;
    return refuse(word, 'a delay', give);
  }
  return Array<number>(count).fill(wait);
}

/** Consecutive equal delays share a word (`4h*12`). */
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
    return waits.length > 0 ? waits : refuse(text, 'a list of delays', 'durations such as 30s 2m 1h');
  },
  print: printWaits,
  list: true,
};

/**
 * How long each step of an SMTP session may take. RFC 5321 section 4.5.3.2 asks for 5 minutes for the greeting, MAIL and
 * RCPT, 2 for DATA, 3 for each block and 10 after the final dot; it says nothing about connecting, EHLO and the TLS
 * handshake. Today, hosts that answer at all answer in seconds, and the queue retries, so the steps up to DATA have less.
 * The final dot keeps its 10 minutes, because hanging up early there delivers the message twice.
 */
export const defaultTimeouts = {
  connect: ms('30s'),
  greeting: ms('1m'),
  ehlo: ms('1m'),
  tls: ms('30s'),
  mail: ms('2m'),
  rcpt: ms('2m'),
  data: ms('2m'),
  dot: ms('10m'),
};

export type Timeouts = typeof defaultTimeouts;

const steps = Object.keys(defaultTimeouts) as (keyof Timeouts)[];

/** A timer of a socket has 31 bits of milliseconds; with a longer time it fires at once. */
const longestTimeout = ms('1d');

function readTimeout(word: string): [keyof Timeouts, number] {
  const [, name, text = ''] = /^(\w+)=(.+)$/.exec(word) ?? [];
  const step = steps.find((each) => each === name?.toLowerCase());
  const value = readDuration(text);
  if (step === undefined || value === null || value > longestTimeout) {
    const give = `STEP=DURATION, such as connect=30s, up to 1d; the steps are ${steps.join(', ')}`;
    return refuse(word, 'a timeout', give);
  }
  return [step, value];
}

export const timeouts: Grammar<Timeouts> = {
  read: (text) => ({ ...defaultTimeouts, ...Object.fromEntries(wordsOf(text).map(readTimeout)) }),
  print: (value) => steps.map((step) => `${step}=${printDuration(value[step])}`).join(' '),
  list: true,
};
