/**
 * Conversations with hosts that break the rules, each with what must come of it after one attempt: a hostile host can have a mail
 * deferred, and nothing worse. They are in test/fixtures/tables/smtp-out/hostile-*.txt. Of a script, ` ; ` parts the steps:
 *
 *   250 ok              says this line
 *   raw 250 o           says this and no line end; \r, \n and \xff are bytes, here and below
 *   flood 9000 x        says x over and over, 9,000 bytes in all
 *   drip 20 x           says one byte each 20 ms; `drip forever`: over and over
 *   hear MAIL           waits for a line that begins so
 *   pause 20            milliseconds
 *   close, rst, fin     ends the connection
 *   until data          converses properly until the reply to DATA is due; `after data`: from the command behind it on
 *   ehlo SIZE 5         is greeted and names this extension; `batch`: names PIPELINING and hears MAIL, RCPT and DATA at once
 *   secure              offers STARTTLS and hears it
 */
import { table } from '../table.ts';
import type { Step } from './mx-hostile.ts';

export interface Case {
  name: string;
  steps: Step[];
  outcome: string;
  /** Undefined: any. */
  category?: string;
  possibleDuplicate?: boolean;
}

const commands = { greeting: '', ehlo: 'EHLO', mail: 'MAIL', rcpt: 'RCPT', data: 'DATA', dot: '.' };
const codes = { greeting: 220, ehlo: 250, mail: 250, rcpt: 250, data: 354, dot: 250 };
type Phase = keyof typeof codes;
const phases = Object.keys(codes) as Phase[];

const say = (text: string): Step => ({ say: `${text}\r\n` });
const hear = (phase: Phase): Step[] => (phase === 'greeting' ? [] : [{ hear: commands[phase] }]);
const proper = (phase: Phase): Step[] => [...hear(phase), say(`${codes[phase]} ok`)];
const until = (phase: Phase): Step[] => [
  ...phases.slice(0, phases.indexOf(phase)).flatMap(proper),
  ...hear(phase),
];
const after = (phase: Phase): Step[] => phases.slice(phases.indexOf(phase) + 1).flatMap(proper);
const ehlo = (extension: string): Step[] => [
  ...until('ehlo'),
  say('250-mx.invalid'),
  say(`250 ${extension}`),
];

const bytes = (text: string) =>
  text.replace(/\\(?:x(..)|(.))/g, (_, hex, one) =>
    hex ? String.fromCharCode(Number.parseInt(hex, 16)) : ({ r: '\r', n: '\n' }[one as string] ?? one),
  );

function stepsOf(script: string): Step[] {
  return script === '-' ? [] : script.split(' ; ').flatMap(stepOf);
}

function stepOf(text: string): Step | Step[] {
  const [, word = '', rest = ''] = /^(\w+) ?(.*)$/s.exec(text) ?? [];
  const [, forever, number, what = ''] = /^(forever )?(\d+) ?(.*)$/s.exec(rest) ?? [];
  switch (word) {
    case 'raw':
      return { say: bytes(rest) };
    case 'flood':
      return { flood: bytes(what), bytes: Number(number) };
    case 'drip':
      return { drip: bytes(what), intervalMs: Number(number), forever: forever !== undefined };
    case 'hear':
      return { hear: bytes(rest) };
    case 'pause':
      return { pause: Number(number) };
    case 'close':
    case 'rst':
    case 'fin':
      return { end: word };
    case 'until':
      return until(rest as Phase);
    case 'after':
      return after(rest as Phase);
    case 'ehlo':
      return ehlo(rest);
    case 'batch':
      return [...ehlo('PIPELINING'), ...hear('data')];
    case 'secure':
      return [...ehlo('STARTTLS'), { hear: 'STARTTLS' }];
    default:
      return say(text);
  }
}

type Row = [name: string, expected: string, script: string];

const inEveryPhase = table<Row>('smtp-out/hostile-families').flatMap(([name, expected, script]) =>
  phases.map((phase): Case => {
    const [outcome, category] = expected.split(' ') as [string, string?];
    const code = String(codes[phase]);
    const steps = [
      ...until(phase),
      ...stepsOf(script.replaceAll('{code}', code).replaceAll('{co}', code.slice(0, 2))),
    ];
    const rest = outcome === 'delivered' ? after(phase) : [];
    const possibleDuplicate = outcome === 'deferred' ? phase === 'dot' : undefined;
    return { name: `${name} (${phase})`, steps: [...steps, ...rest], outcome, category, possibleDuplicate };
  }),
);

const singles = table<Row>('smtp-out/hostile-conversations').map(([name, expected, script]): Case => {
  const [outcome, category, duplicate] = expected.split(' ') as [string, string?, string?];
  return {
    name,
    steps: stepsOf(script),
    outcome,
    category: category === 'any' ? undefined : category,
    possibleDuplicate: duplicate === undefined ? undefined : duplicate === 'true',
  };
});

export const hostileCases: Case[] = [...inEveryPhase, ...singles];
