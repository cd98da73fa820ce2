/**
 * Replies as hosts really write them: filters and firewalls put lines of their own before or after the server's. From bug
 * reports against mail servers and SMTP clients (Postfix, Exim, Haraka, Nodemailer).
 */
import test, { type ExecutionContext } from 'ava';
import { type Step, startHostile } from '#lab/mx/mx-hostile.ts';
import { startDeliverer } from '#lab/scenes/deliverer.ts';
import { table } from '#lab/table.ts';

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
  const { verdict } = await deliverer.deliver();
  return { ...verdict, heard: server.heard.join('') };
}

type Case = [phase: keyof typeof phases, reply: string[], outcome: string, diagnostic: string];

const cases: Case[] = table('smtp-out/mixed-replies');

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
