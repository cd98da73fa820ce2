/**
 * Conversations with hosts that break the rules, each with what must come of it. `outcome` is what the mail's state
 * must be after one attempt; a hostile host can have a mail deferred, and nothing worse.
 */
import type { Step } from './mx-hostile.ts';

export interface Case {
  name: string;
  steps: Step[];
  outcome: 'delivered' | 'deferred' | 'bounced';
  category?: string;
  /** Of a deferral. */
  possibleDuplicate?: boolean;
}

type Phase = 'greeting' | 'ehlo' | 'mail' | 'rcpt' | 'data' | 'dot';

const commands: Record<Exclude<Phase, 'greeting'>, string> = {
  ehlo: 'EHLO',
  mail: 'MAIL',
  rcpt: 'RCPT',
  data: 'DATA',
  dot: '.',
};
const phases: Phase[] = ['greeting', 'ehlo', 'mail', 'rcpt', 'data', 'dot'];
const codes: Record<Phase, number> = { greeting: 220, ehlo: 250, mail: 250, rcpt: 250, data: 354, dot: 250 };

const say = (text: string): Step => ({ say: `${text}\r\n` });
const hear = (phase: Phase): Step[] => (phase === 'greeting' ? [] : [{ hear: commands[phase] }]);
const proper = (phase: Phase): Step[] => [...hear(phase), say(`${codes[phase]} ok`)];

/** A proper conversation until this phase's reply is due. */
const until = (phase: Phase): Step[] => [
  ...phases.slice(0, phases.indexOf(phase)).flatMap(proper),
  ...hear(phase),
];

const after = (phase: Phase): Step[] => phases.slice(phases.indexOf(phase) + 1).flatMap(proper);

interface Family {
  name: string;
  steps(code: number): Step[];
  outcome?: Case['outcome'];
  category?: string;
}

const megabytes = 1024 * 1024;

/** What may go wrong in every phase alike. */
const families: Family[] = [
  { name: 'never answers', steps: () => [], category: 'network' },
  { name: 'closes', steps: () => [{ end: 'close' }], category: 'network' },
  { name: 'resets', steps: () => [{ end: 'rst' }], category: 'network' },
  { name: 'half closes', steps: () => [{ end: 'fin' }], category: 'network' },
  {
    name: 'breaks off in the code',
    steps: (code) => [{ say: `${code}`.slice(0, 2) }, { end: 'fin' }],
    category: 'protocol',
  },
  {
    name: 'drips a line without end',
    steps: (code) => [{ say: `${code} ` }, { drip: 'x', intervalMs: 40, forever: true }],
    category: 'network',
  },
  {
    name: 'drips lines without end',
    steps: (code) => [{ drip: `${code}-x\r\n`, intervalMs: 20, forever: true }],
    category: 'network',
  },
  { name: 'ends lines in CR alone', steps: (code) => [{ say: `${code} ok\r` }], category: 'network' },
  {
    name: 'never ends a long reply',
    steps: (code) => [say(`${code}-one`), say(`${code}-two`)],
    category: 'network',
  },
  { name: 'speaks HTTP', steps: () => [say('HTTP/1.1 400 Bad Request')], category: 'protocol' },
  { name: 'sends garbage', steps: () => [{ say: '\xff\xfe\x80\x01\x1b[2J\r\n' }], category: 'protocol' },
  { name: 'sends NULs', steps: (code) => [{ say: `${code}\0ok\0\r\n` }], category: 'protocol' },
  { name: 'says 000', steps: () => [say('000 ok')], category: 'protocol' },
  { name: 'says 199', steps: () => [say('199 ok')], category: 'protocol' },
  { name: 'says 600', steps: () => [say('600 ok')], category: 'protocol' },
  { name: 'says 999', steps: () => [say('999 ok')], category: 'protocol' },
  { name: 'says four digits', steps: (code) => [say(`${code}0 ok`)], category: 'protocol' },
  {
    name: 'says digits of another script',
    steps: () => [{ say: '\xd9\xa2\xd9\xa5\xd9\xa0 ok\r\n' }],
    category: 'protocol',
  },
  {
    name: 'loses the code in a long reply',
    steps: (code) => [say(`${code}-one`), say('two'), say(`${code} three`)],
    outcome: 'delivered',
  },
  {
    name: 'sends a line of 10 MB',
    steps: () => [{ flood: 'x', bytes: 10 * megabytes }],
    category: 'protocol',
  },
  {
    name: 'sends 100,000 lines',
    steps: (code) => [{ flood: `${code}-x\r\n`, bytes: 100_000 * 7 }],
    category: 'protocol',
  },
  { name: 'sends empty lines', steps: () => [{ flood: '\r\n', bytes: 5 * megabytes }], category: 'protocol' },
  {
    name: 'sends one byte at a time',
    steps: (code) => [{ drip: `${code} ok\r\n`, intervalMs: 5 }],
    outcome: 'delivered',
  },
  { name: 'ends lines in LF alone', steps: (code) => [{ say: `${code} ok\n` }], outcome: 'delivered' },
  { name: 'says the code alone', steps: (code) => [say(`${code}`)], outcome: 'delivered' },
  {
    name: 'says its piece in UTF-8 and controls',
    steps: (code) => [{ say: `${code} gr\xc3\xbc\xc3\x9fe \x1b[31m\0\x07\r\n` }],
    outcome: 'delivered',
  },
];

const inEveryPhase = families.flatMap(({ name, steps, outcome = 'deferred', category }) =>
  phases.map((phase): Case => {
    const script = [...until(phase), ...steps(codes[phase])];
    return {
      name: `${name} (${phase})`,
      steps: outcome === 'delivered' ? [...script, ...after(phase)] : script,
      outcome,
      category,
      ...(outcome === 'deferred' && { possibleDuplicate: phase === 'dot' }),
    };
  }),
);

const greeted: Step[] = [...proper('greeting'), ...hear('ehlo')];
const ehlo = (...lines: string[]): Step[] => {
  const all = ['mx.invalid', ...lines];
  return all.map((line, n) => say(`250${n === all.length - 1 ? ' ' : '-'}${line}`));
};
/** After an EHLO reply of our own. */
const rest = after('ehlo');
const batch = hear('data');
const deferred = (name: string, steps: Step[], category?: string, possibleDuplicate?: boolean): Case => ({
  name,
  steps,
  outcome: 'deferred',
  category,
  possibleDuplicate,
});
const delivered = (name: string, steps: Step[]): Case => ({ name, steps, outcome: 'delivered' });
const bounced = (name: string, steps: Step[], category?: string): Case => ({
  name,
  steps,
  outcome: 'bounced',
  category,
});

// They wait for STARTTLS, so that nothing is said to the second try, in clear.
const secure: Step[] = [...greeted, ...ehlo('STARTTLS'), { hear: 'STARTTLS' }];

const singles: Case[] = [
  deferred(
    'says everything before it is asked',
    [say('220 ok'), say('250 ok'), say('250 ok'), say('250 ok'), say('354 ok'), say('250 ok')],
    'protocol',
  ),
  deferred('greets twice', [say('220 one'), say('220 two'), ...after('greeting')], 'protocol'),
  deferred('greets with 250', [say('250 hello')], 'protocol'),
  deferred('greets with 354', [say('354 go ahead')], 'protocol'),
  deferred('greets with 554', [say('554 5.7.1 not you')], 'policy'),
  deferred('greets with 421 and closes', [say('421 4.3.2 busy'), { end: 'fin' }]),
  deferred('greets with 220 and closes', [say('220 hello'), { end: 'close' }], 'network'),
  deferred('greets with 220 and resets', [say('220 hello'), { end: 'rst' }], 'network'),
  deferred('a banner without end', [{ say: '220 ' }, { flood: 'A', bytes: 20 * megabytes }], 'protocol'),
  deferred(
    'a banner of continued lines without end',
    [{ flood: '220-hello there\r\n', bytes: 20 * megabytes }],
    'protocol',
  ),
  deferred('refuses EHLO and HELO', [...greeted, say('502 what'), { hear: 'HELO' }, say('502 what')]),
  delivered('refuses EHLO, takes HELO', [
    ...greeted,
    say('502 what'),
    { hear: 'HELO' },
    say('250 ok'),
    ...rest,
  ]),
  deferred(
    'refuses EHLO, and answers HELO before it comes',
    [...greeted, { say: '502 what\r\n250 ok\r\n' }, ...rest],
    'protocol',
  ),
  deferred(
    'STARTTLS: 454, and a reply too many',
    [...secure, { say: '454 not now\r\n250 ok\r\n' }, ...rest],
    'network',
  ),
  deferred('refuses EHLO with 421', [...greeted, say('421 go away')]),
  deferred('answers EHLO with 354', [...greeted, say('354 ok')], 'protocol'),
  deferred(
    'EHLO with 10,000 extensions',
    [...greeted, { flood: '250-X-EXTENSION\r\n', bytes: 160_000 }, say('250 ok')],
    'protocol',
  ),
  delivered('EHLO with 1,000 extensions', [
    ...greeted,
    ...ehlo(...Array.from({ length: 1000 }, (_, n) => `X-EXTENSION-${n}`)),
    ...rest,
  ]),
  delivered('SIZE=abc', [...greeted, ...ehlo('SIZE=abc'), ...rest]),
  delivered('SIZE abc', [...greeted, ...ehlo('SIZE abc'), ...rest]),
  delivered('SIZE -5', [...greeted, ...ehlo('SIZE -5'), ...rest]),
  delivered('SIZE 5 and more', [...greeted, ...ehlo('SIZE 5 octets'), ...rest]),
  delivered('a SIZE in its name', [...greeted, ...ehlo('SIZE 5', 'HELP').slice(1), ...rest]),
  delivered('SIZE 0', [...greeted, ...ehlo('SIZE 0'), ...rest]),
  delivered('SIZE of 30 digits', [...greeted, ...ehlo(`SIZE ${'9'.repeat(30)}`), ...rest]),
  bounced('SIZE 5', [...greeted, ...ehlo('SIZE 5'), ...rest], 'size'),
  deferred(
    'closes in the middle of the EHLO reply',
    [...greeted, say('250-mx.invalid'), { end: 'fin' }],
    'network',
  ),
  deferred('answers MAIL with 354', [...until('mail'), say('354 go ahead')], 'protocol'),
  deferred('answers RCPT with 354', [...until('rcpt'), say('354 go ahead')], 'protocol'),
  deferred(
    'answers DATA with 250',
    [...until('data'), say('250 ok'), ...hear('dot'), say('250 ok')],
    'protocol',
  ),
  deferred('answers the message with 354', [...until('dot'), say('354 go ahead')], 'protocol', true),
  deferred('354 and 354', [...until('data'), say('354 go'), say('354 go')], 'protocol'),
  deferred('354 and 250 at once', [...until('data'), { say: '354 go\r\n250 taken\r\n' }], 'protocol'),
  delivered('250 after the dot, twice', [...until('dot'), { say: '250 taken\r\n250 taken\r\n' }]),
  delivered('250 after the dot, and 421', [
    ...until('dot'),
    { say: '250 taken\r\n421 enough\r\n' },
    { end: 'fin' },
  ]),
  delivered('250 after the dot, and garbage', [...until('dot'), { say: '250 taken\r\n\xff\xff\xff' }]),
  delivered('250 after the dot, and a flood', [
    ...until('dot'),
    say('250 taken'),
    { flood: 'x', bytes: 10 * megabytes },
  ]),
  delivered('250 after the dot, and a reset', [
    ...until('dot'),
    say('250 taken'),
    { pause: 20 },
    { end: 'rst' },
  ]),
  deferred(
    '421 after the dot',
    [...until('dot'), say('421 4.3.0 stopping'), { end: 'fin' }],
    undefined,
    false,
  ),
  deferred('421 to MAIL', [...until('mail'), say('421 4.7.0 slow down'), { end: 'fin' }], undefined, false),
  deferred('421 to RCPT and no end', [...until('rcpt'), say('421 4.7.0 slow down')], undefined, false),
  bounced(
    '550 to RCPT and closes at once',
    [...until('rcpt'), say('550 5.1.1 unknown'), { end: 'close' }],
    'unknown_user',
  ),
  bounced(
    'pipelined: 550 to RCPT and closes',
    [...greeted, ...ehlo('PIPELINING'), ...batch, { say: '250 ok\r\n550 5.1.1 unknown\r\n' }, { end: 'fin' }],
    'unknown_user',
  ),
  bounced(
    'pipelined: 550 to RCPT, 354 to DATA',
    [
      ...greeted,
      ...ehlo('PIPELINING'),
      ...batch,
      { say: '250 ok\r\n550 5.1.1 unknown\r\n354 go\r\n' },
      { hear: '\\.' },
      say('250 taken'),
    ],
    'unknown_user',
  ),
  bounced(
    'pipelined: 550 to RCPT, 354 to DATA, then silence',
    [...greeted, ...ehlo('PIPELINING'), ...batch, { say: '250 ok\r\n550 5.1.1 unknown\r\n354 go\r\n' }],
    'unknown_user',
  ),
  bounced(
    'pipelined: 550 to MAIL, 354 to DATA',
    [...greeted, ...ehlo('PIPELINING'), ...batch, { say: '550 5.7.1 no\r\n503 no\r\n354 go\r\n' }],
    'policy',
  ),
  deferred(
    'pipelined: too many replies',
    [...greeted, ...ehlo('PIPELINING'), ...batch, { say: '250 ok\r\n250 ok\r\n354 go\r\n250 taken\r\n' }],
    'protocol',
  ),
  deferred(
    'pipelined: replies in the wrong order',
    [...greeted, ...ehlo('PIPELINING'), ...batch, { say: '354 go\r\n250 ok\r\n250 ok\r\n' }],
    'protocol',
  ),
  deferred(
    'pipelined: one reply for three',
    [...greeted, ...ehlo('PIPELINING'), ...batch, say('250 ok')],
    'network',
  ),
  deferred(
    'pipelined: 250 for each',
    [...greeted, ...ehlo('PIPELINING'), ...batch, { say: '250 ok\r\n250 ok\r\n250 ok\r\n' }],
    'protocol',
  ),
  deferred(
    'pipelined: 421 amid the batch',
    [
      ...greeted,
      ...ehlo('PIPELINING'),
      ...batch,
      { say: '250 ok\r\n421 4.7.0 slow down\r\n' },
      { end: 'fin' },
    ],
    undefined,
    false,
  ),
  deferred('STARTTLS: 220, then garbage', [...secure, say('220 go ahead'), { say: 'this is no TLS\r\n' }]),
  deferred('STARTTLS: 220, then silence', [...secure, say('220 go ahead')]),
  deferred('STARTTLS: 220, then closes', [...secure, say('220 go ahead'), { end: 'close' }]),
  deferred('STARTTLS: 220, then resets', [...secure, say('220 go ahead'), { end: 'rst' }]),
  deferred('STARTTLS: 220, then a flood', [
    ...secure,
    say('220 go ahead'),
    { flood: '\x16\x03\x03\xff\xff', bytes: 5 * megabytes },
  ]),
  deferred('STARTTLS: 220, then drips a record', [
    ...secure,
    say('220 go ahead'),
    { say: '\x16\x03\x03\x10\x00' },
    { drip: '\0', intervalMs: 30, forever: true },
  ]),
  deferred('STARTTLS: commands in clear behind the 220', [
    ...secure,
    {
      say: '220 go ahead\r\n250-mx.invalid\r\n250 PIPELINING\r\n250 ok\r\n250 ok\r\n354 go\r\n250 taken\r\n',
    },
  ]),
  deferred('STARTTLS: 354', [...secure, say('354 go ahead')], 'network'),
  deferred('STARTTLS: garbage', [...secure, say('?')], 'network'),
  deferred('STARTTLS: 421', [...secure, say('421 4.3.0 stopping'), { end: 'fin' }], undefined, false),
  delivered('STARTTLS: 454, and on in clear', [...secure, say('454 4.7.0 not now'), ...rest]),
  delivered('STARTTLS: 501, and on in clear', [...secure, say('501 5.5.4 what'), ...rest]),
];

export const hostileCases: Case[] = [...inEveryPhase, ...singles];
