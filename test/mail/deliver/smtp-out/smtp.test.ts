/** What goes over the wire: the envelope's parameters, and the message byte for byte. */
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { type MxOptions, startMx } from '#lab/mx/mx.ts';
import { type Step, startHostile } from '#lab/mx/mx-hostile.ts';
import { runs } from '#lab/runs.ts';
import { said, startDeliverer } from '#lab/scenes/deliverer.ts';
import { table } from '#lab/table.ts';
import { until } from '#lab/until.ts';
import type { SessionTimeouts } from '#mail/deliver/smtp-out/deadline.ts';
import { dotStuffed, endOfPiece } from '#mail/deliver/smtp-out/dot-stuffing.ts';

async function deliver(t: ExecutionContext, mxOptions: MxOptions, message: string, recipient?: string) {
  const mx = await startMx({ host: '127.0.0.2', tls: false, ...mxOptions });
  t.teardown(mx.close);
  const deliverer = startDeliverer(t, { port: mx.port });
  const attempt = await deliverer.deliver({
    message: Buffer.from(message, 'utf8'),
    recipient: recipient ?? 'ann@there.invalid',
  });
  return { attempt, mx, message: mx.messages[0], commands: mx.sessions[0]!.commands };
}

const ok = (text: string): Step => ({ say: `${text} ok\r\n` });
const end: Step[] = [{ hear: '.' }, ok('250')];
const oneByOne = {
  steps: [
    ...[ok('220'), { hear: 'EHLO' }, ok('250'), { hear: 'MAIL' }, ok('250'), { hear: 'RCPT' }, ok('250')],
    ...[{ hear: 'DATA' }, ok('354'), ...end],
  ],
  envelope: ['MAIL', 'RCPT', 'DATA'],
};
const pipelined = {
  steps: [
    ...[ok('220'), { hear: 'EHLO' }, { say: '250-mx\r\n250 PIPELINING\r\n' }, { hear: 'DATA' }],
    ...[ok('250'), ok('250'), ok('354'), ...end],
  ],
  envelope: ['MAIL RCPT DATA'],
};

const head = 'Subject: hello\r\n\r\n';

const bodies: [what: string, sent: string, received?: string][] = table('smtp-out/messages');

for (const [what, sent, received = sent] of bodies) {
  test(`the message arrives as it was: ${what}`, async (t) => {
    const { message, commands } = await deliver(t, {}, head + sent);
    t.is(message!.raw.toString(), head + received);
    t.false(commands.includes('QUIT'), 'and nothing of it was taken for a command');
  });
}

test('a large message goes out in pieces, each dot and line end as in one', async (t) => {
  const lines = fc.array(fc.constantFrom('.', '..', '', 'a', '.a', 'x'.repeat(900), '\r', '\n'), {
    minLength: 20,
  });
  await fc.assert(
    fc.asyncProperty(lines, async (some) => {
      const body = `${some.join('\r\n')}\r\n`;
      const whole = Buffer.from(body.repeat(Math.ceil(200_000 / body.length)));
      const pieces: Buffer[] = [];
      for (let at = 0; at < whole.length; at = endOfPiece(whole, at))
        pieces.push(dotStuffed(whole.subarray(at, endOfPiece(whole, at))));
      t.true(pieces.length > 1 && pieces.every(({ length }) => length < 140_000));
      t.true(Buffer.concat(pieces).equals(dotStuffed(whole)));
    }),
    { numRuns: runs(20) },
  );
  const sent = `${head}${'.\r\n'.repeat(100_000)}`;
  const { message } = await deliver(t, {}, sent);
  t.is(message!.raw.toString(), sent);
});

test('a body beyond ASCII is declared where 8BITMIME is offered, and not sent where it is not', async (t) => {
  const text = `${head}grüße\r\n`;
  const offered = await deliver(t, {}, text);
  t.is(offered.message!.params.BODY, '8BITMIME');
  const not = await deliver(t, { extensions: ['PIPELINING'] }, text);
  t.like(not.attempt.verdict, { outcome: 'bounced', rule: 'no-8bitmime', bounce: 'soft' });
  t.false(not.commands.some((command) => command.startsWith('MAIL')));
  const ascii = await deliver(t, {}, head);
  t.is(ascii.message!.params.BODY, undefined);
});

test('SIZE is said where it is offered', async (t) => {
  t.is((await deliver(t, {}, head)).message!.params.SIZE, String(head.length));
  t.is((await deliver(t, { extensions: [] }, head)).message!.params.SIZE, undefined);
});

test('a message over the announced size bounces without being sent', async (t) => {
  const { attempt, commands } = await deliver(t, { extensions: ['SIZE 10'] }, head);
  t.like(attempt.verdict, { outcome: 'bounced', category: 'size', bounce: 'soft' });
  t.false(commands.some((command) => command.startsWith('MAIL')));
});

test('SMTPUTF8 is said for an address beyond ASCII, in the envelope or in the header', async (t) => {
  const inEnvelope = await deliver(t, {}, head, 'jörg@there.invalid');
  t.true(inEnvelope.message!.params.SMTPUTF8);
  const inHeader = await deliver(t, {}, `To: jörg@there.invalid\r\n${head}`);
  t.true(inHeader.message!.params.SMTPUTF8);
  const inBody = await deliver(t, {}, `${head}jörg\r\n`);
  t.is(inBody.message!.params.SMTPUTF8, undefined);
  const inBoth = await deliver(t, {}, `To: jörg@there.invalid\r\n${head}`, 'jörg@there.invalid');
  t.true(inBoth.message!.params.SMTPUTF8);
  t.is(inBoth.commands.find((one) => one.startsWith('MAIL'))!.match(/SMTPUTF8/g)!.length, 1);
});

test('where SMTPUTF8 is not offered, an address beyond ASCII cannot be reached, nor carried in a header', async (t) => {
  const extensions = ['8BITMIME'];
  const { attempt, commands } = await deliver(t, { extensions }, head, 'jörg@there.invalid');
  t.like(attempt.verdict, { outcome: 'bounced', category: 'protocol', bounce: 'hard' });
  t.false(commands.some((command) => command.startsWith('MAIL')));
  const inHeader = await deliver(t, { extensions }, `To: jörg@there.invalid\r\n${head}`);
  t.like(inHeader.attempt.verdict, { outcome: 'bounced', category: 'protocol', bounce: 'soft' });
  t.regex(inHeader.attempt.verdict.diagnostic!, /header has an internationalized address.*SMTPUTF8/);
  t.false(
    inHeader.commands.some((command) => command.startsWith('MAIL')),
    'the address gets other mail',
  );
});

test('a header that is not UTF-8 is no case for SMTPUTF8', async (t) => {
  const mx = await startMx({ host: '127.0.0.2', tls: false, extensions: ['8BITMIME'] });
  t.teardown(mx.close);
  const message = Buffer.from(`References: <gr\xfc@x.invalid>\r\n${head}`, 'latin1');
  const attempt = await startDeliverer(t, { port: mx.port }).deliver({ message });
  t.is(attempt.verdict.outcome, 'delivered');
});

for (const isOffered of [true, false]) {
  const how = isOffered
    ? 'go in one batch where PIPELINING is offered'
    : 'wait for each reply where it is not';
  test(`commands ${how}`, async (t) => {
    const { steps, envelope } = isOffered ? pipelined : oneByOne;
    const server = await startHostile('127.0.0.3', 0, steps);
    t.teardown(server.close);
    const deliverer = startDeliverer(t, { port: server.port, hosts: [{ addresses: ['127.0.0.3'] }] });
    t.is((await deliverer.deliver()).verdict.outcome, 'delivered');
    t.deepEqual(
      server.heard.slice(1).map((text) => text.match(/^(MAIL|RCPT|DATA)/gm)?.join(' ')),
      [...envelope, undefined],
    );
  });
}

test('HELO where EHLO is not known', async (t) => {
  const script = {
    ehlo: ({ command }: { command: string }) => (command.startsWith('EHLO') ? '502 what' : undefined),
  };
  const { attempt, commands } = await deliver(t, { script }, head);
  t.is(attempt.verdict.outcome, 'delivered');
  t.true(commands.includes('HELO postern.invalid'));
});

const huge = `${'x'.repeat(998)}\r\n`.repeat(20_000);

for (const tls of [false, true]) {
  const where = tls ? 'under TLS' : 'in clear';
  test(`a refusal in the middle of the message is heard, and the connection not used again: ${where}`, async (t) => {
    const script = { receiving: () => '552 5.3.4 too much' };
    const { attempt, mx } = await deliver(t, { script, tls }, head + huge);
    t.like(attempt.verdict, { outcome: 'bounced', category: 'size', possibleDuplicate: false });
    await until(() => mx.connections === 0, { what: 'the connection to end' });
  });

  test(`an acceptance in the middle of the message is none: ${where}`, async (t) => {
    const script = { receiving: () => '250 2.0.0 taken' };
    const { attempt } = await deliver(t, { script, tls }, head + huge);
    t.like(attempt.verdict, { outcome: 'deferred', category: 'protocol', possibleDuplicate: false });
  });

  test(`a message whose end is out may have been taken: ${where}`, async (t) => {
    const script = { dot: () => 'reset' as const };
    const { attempt } = await deliver(t, { script, tls }, head + huge);
    t.like(attempt.verdict, { outcome: 'deferred', category: 'network', possibleDuplicate: true });
  });

  test(`a message that was cut off before its end has not been taken: ${where}`, async (t) => {
    const script = { receiving: () => 'reset' as const };
    const { attempt } = await deliver(t, { script, tls }, head + huge);
    t.like(attempt.verdict, { outcome: 'deferred', category: 'network', possibleDuplicate: false });
  });
}

async function deliverTo(t: ExecutionContext, steps: Step[], timeouts: Partial<SessionTimeouts> = {}) {
  const server = await startHostile('127.0.0.3', 0, steps);
  t.teardown(server.close);
  const hosts = [{ addresses: ['127.0.0.3'] }];
  const deliverer = startDeliverer(t, { port: server.port, hosts, timeouts });
  return { attempt: await deliverer.deliver(), deliverer, server };
}

test('a host that wants the message although it took no recipient gets an empty one, and the next mail', async (t) => {
  const batch: Step[] = [{ hear: 'DATA' }, ok('250')];
  const { attempt, deliverer, server } = await deliverTo(t, [
    ...pipelined.steps.slice(0, 3),
    ...[...batch, { say: '550 5.1.1 unknown\r\n354 go\r\n' }, { hear: '.' }, ok('554')],
    ...[{ hear: 'RSET' }, ok('250'), ...batch, ok('250'), ok('354'), ...end],
  ]);
  t.like(attempt.verdict, { outcome: 'bounced', category: 'unknown_user' });
  await until(() => deliverer.pool.stats('mx1.invalid').idle === 1, { what: 'the connection to rest' });
  t.is((await deliverer.deliver()).verdict.outcome, 'delivered');
  t.true(server.heard.includes('.\r\n'));
});

test('what a host says in clear after agreeing to TLS is thrown away', async (t) => {
  const steps: Step[] = [
    ...[ok('220'), { hear: 'EHLO' }, { say: '250-mx\r\n250 STARTTLS\r\n' }, { hear: 'STARTTLS' }],
    { say: '220 go\r\n250-mx\r\n250 PIPELINING\r\n' },
  ];
  // Its handshake goes nowhere, and in clear nobody says STARTTLS to it.
  const { attempt } = await deliverTo(t, steps, { tls: 200, mail: 200 });
  t.regex(said(attempt), /discarded \d+ bytes that the host sent without TLS/);
  t.false(said(attempt).includes('PIPELINING'));
});

test('a character of a reply may come in two pieces; what is no UTF-8 is read byte by byte', async (t) => {
  const last = (...steps: Step[]) => deliverTo(t, [...oneByOne.steps.slice(0, -1), ...steps]);
  const inTwo = await last({ say: '250 gr\xc3' }, { pause: 20 }, { say: '\xbc\xc3\x9fe\r\n' });
  t.is(inTwo.attempt.reply!.text, 'grüße');
  const latin1 = await last({ say: '250 gr\xfc\xdfe\r\n' });
  t.is(latin1.attempt.reply!.text, 'grüße');
});

test('a refusal that the end of the connection cuts off is one', async (t) => {
  const { attempt } = await deliverTo(t, [
    ...oneByOne.steps.slice(0, 6),
    ...([{ say: '550 5.1.1 unkn' }, { end: 'fin' }] as const),
  ]);
  t.like(attempt.verdict, { outcome: 'bounced', category: 'unknown_user' });
});
