/**
 * Replies as hosts really write them: filters and firewalls put lines of their own before or after the server's. From bug
 * reports against mail servers and SMTP clients (Postfix, Exim, Haraka, Nodemailer).
 */
import test, { type ExecutionContext } from 'ava';
import { type Step, startHostile } from '../lab/mx/mx-hostile.ts';
import { startDeliverer } from '../lab/scenes/deliverer.ts';

const say = (...lines: string[]): Step => ({ say: lines.map((line) => `${line}\r\n`).join('') });
const hear = (line: string): Step => ({ hear: line });

const greeted = [say('220 mx'), hear('EHLO'), say('250 mx')];
const mailTaken = [...greeted, hear('MAIL'), say('250 ok')];
const rcptTaken = [...mailTaken, hear('RCPT'), say('250 ok')];
const dataTaken = [...rcptTaken, hear('DATA'), say('354 go')];
/** In which phase the reply comes: what precedes it, and what follows if it is consent. */
const phases = {
  greeting: [[], [hear('EHLO'), say('250 mx'), ...rest('MAIL')]],
  ehlo: [[say('220 mx'), hear('EHLO')], rest('MAIL')],
  mail: [[...greeted, hear('MAIL')], rest('RCPT')],
  rcpt: [[...mailTaken, hear('RCPT')], rest('DATA')],
  data: [
    [...rcptTaken, hear('DATA')],
    [hear('.'), say('250 queued')],
  ],
  dot: [[...dataTaken, hear('.')], []],
} satisfies Record<string, [Step[], Step[]]>;

function rest(from: 'MAIL' | 'RCPT' | 'DATA'): Step[] {
  const all = [
    [hear('MAIL'), say('250 ok')],
    [hear('RCPT'), say('250 ok')],
    [hear('DATA'), say('354 go')],
  ];
  const steps = all.slice(['MAIL', 'RCPT', 'DATA'].indexOf(from)).flat();
  return [...steps, hear('.'), say('250 queued')];
}

async function outcomeOf(t: ExecutionContext, steps: Step[]) {
  const server = await startHostile('127.0.0.3', 0, steps);
  t.teardown(server.close);
  const deliverer = startDeliverer(t, { port: server.port, hosts: [{ addresses: ['127.0.0.3'] }] });
  const { outcome } = await deliverer.deliver();
  return { ...outcome, heard: server.heard.join('') };
}

type Case = [phase: keyof typeof phases, reply: string[], outcome: string, diagnostic: string];

const cases: Case[] = [
  ['greeting', ['220-mx ESMTP', '554 5.7.1 blocked'], 'deferred', '554 5.7.1 mx ESMTP blocked'],
  ['greeting', ['554-no service', '554 for 192.0.2.1'], 'deferred', '554 no service for 192.0.2.1'],
  ['greeting', ['550-no service', '421 try later'], 'deferred', '421 no service try later'],
  ['greeting', ['220-mx', '421 4.7.0 too many'], 'deferred', '421 4.7.0 mx too many'],
  ['greeting', ['220-mx', 'welcome', '521 takes no mail'], 'deferred', '521 mx welcome takes no mail'],
  ['greeting', ['554'], 'deferred', '554'],
  ['greeting', ['220-mx', '221 welcome'], 'deferred', '221 is no answer to greeting: mx welcome'],
  ['greeting', ['220-mx', 'welcome', '220 ready'], 'delivered', '250 queued'],
  ['greeting', ['554-a filter', '220 mx'], 'delivered', '250 queued'],
  ['ehlo', ['250-mx', '220 ok'], 'delivered', '250 queued'],
  ['ehlo', ['250-mx', '421 4.3.2 closing'], 'deferred', '421 4.3.2 mx closing'],
  ['mail', ['250-ok', '451 4.3.0 later'], 'deferred', '451 4.3.0 ok later'],
  ['mail', ['250-', '250'], 'delivered', '250 queued'],
  ['rcpt', ['250-ok', '550 5.1.1 no such user'], 'bounced', '550 5.1.1 ok no such user'],
  ['rcpt', ['550-5.1.1 no', '554 such user'], 'bounced', '554 no such user'],
  ['rcpt', ['550-5.1.1 no', '550 such user'], 'bounced', '550 5.1.1 no such user'],
  ['rcpt', ['450-wait', '550 5.1.1 no such user'], 'bounced', '550 5.1.1 wait no such user'],
  ['rcpt', ['550-no', '450 4.2.1 wait'], 'deferred', '450 4.2.1 no wait'],
  ['rcpt', ['550-the user', 'is unknown', '550 here'], 'bounced', '550 the user is unknown here'],
  ['rcpt', ['250-ok', '251 will forward'], 'delivered', '250 queued'],
  ['rcpt', ['550 5.1.1 usuario inv\xe1lido'], 'bounced', '550 5.1.1 usuario inválido'],
  ['data', ['354-go', '554 5.5.1 no recipients'], 'bounced', '554 5.5.1 go no recipients'],
  ['dot', ['250-scanned', '554 5.7.1 spam'], 'bounced', '554 5.7.1 scanned spam'],
  ['dot', ['554-scanned', '250 2.0.0 queued'], 'delivered', '250 2.0.0 scanned queued'],
  ['dot', ['250-scanned', '450 4.7.1 later'], 'deferred', '450 4.7.1 scanned later'],
  ['dot', ['250 '], 'delivered', '250'],
  ['dot', [`554 ${'x'.repeat(5000)}`], 'bounced', `554 ${'x'.repeat(4000)}`],
];

for (const [phase, reply, outcome, diagnostic] of cases) {
  const title = reply.join(' / ').slice(0, 60);
  test(`${phase}: ${title}: ${outcome}`, async (t) => {
    const [before, after] = phases[phase];
    t.like(await outcomeOf(t, [...before, say(...reply), ...after]), { outcome, diagnostic });
  });
}

test('lines that end with LF alone', async (t) => {
  const steps = [...mailTaken, hear('RCPT'), { say: '550-no\n550 5.1.1 such user\n' }];
  t.like(await outcomeOf(t, steps), { outcome: 'bounced', diagnostic: '550 5.1.1 no such user' });
});

test('a greeting that is cut off in its refusal keeps the reason', async (t) => {
  const steps: Step[] = [{ say: '220-mx\r\n554-5.7.1 blocked\r\nfor abuse\r\n' }, { end: 'close' }];
  t.like(await outcomeOf(t, steps), {
    outcome: 'deferred',
    diagnostic: '554 5.7.1 mx blocked for abuse',
    rule: 'blocklist',
  });
});

test('pipelined: a refusal of two codes decides, also before lines that are no reply', async (t) => {
  const steps = [
    ...[say('220 mx'), hear('EHLO'), say('250-mx', '250 PIPELINING'), hear('DATA')],
    say('250 ok', '250-ok', '550 5.1.1 no such user', 'and no such person'),
  ];
  t.like(await outcomeOf(t, steps), { outcome: 'bounced', diagnostic: '550 5.1.1 ok no such user' });
});

test('a reply of lines without end is given up', async (t) => {
  const flood = { flood: '554-and so on\r\nand on\r\n', bytes: 1_000_000 };
  t.like(await outcomeOf(t, [flood]), { outcome: 'deferred', rule: 'not-smtp' });
});

test('a line before any reply is not SMTP', async (t) => {
  t.like(await outcomeOf(t, [say('welcome', '220 mx')]), { outcome: 'deferred', rule: 'not-smtp' });
});
