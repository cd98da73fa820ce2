/** Mail for applications over SMTP: which recipients are taken, what is kept and told, and what is refused before the 250. */
import test from 'ava';
import { deleteDomain, findDomain } from '#accounts/rows/domains-table.ts';
import { cliOf } from '#lab/cli.ts';
import { readExposition } from '#lab/exposition.ts';
import { receiveAt, startReceiving } from '#lab/scenes/receiving.ts';
import { asNewTenant } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { addRoute } from '#mail/received/define-route.ts';
import { deleteOldReceived, rawOf, storedBytes } from '#mail/received/rows/received-mails.ts';

const mail = (subject: string, ...fields: string[]) =>
  ['From: Ann <ann@there.invalid>', `Subject: ${subject}`, ...fields, '', 'Hello', '.', ''].join('\r\n');

test('a mail for a route is kept as it came, under our two fields, and told as an event', async (t) => {
  const world = await startReceiving(t);
  const route = await world.route({ pattern: 'orders@x.invalid' });
  const raw = mail('Order', 'Message-ID: <one@there.invalid>', 'Auto-Submitted: auto-generated');
  t.regex(await world.receives(raw, { to: ['Orders@X.invalid'] }), /^250 2\.6\.0 /);

  const [kept, ...more] = await world.kept();
  t.deepEqual(more, []);
  t.like(kept, {
    domain: 'x.invalid',
    routeId: route.id,
    action: 'webhook',
    recipients: ['Orders@X.invalid'],
    sender: 'ann@there.invalid',
    helo: 'there.invalid',
    messageId: 'one@there.invalid',
    subject: 'Order',
    fromHeader: 'Ann <ann@there.invalid>',
    inReplyTo: null,
  });
  t.like(kept!.summary, { isReadable: true, preview: 'Hello .', isAutomatic: true, tls: null });
  const stored = (await rawOf(world.db, world.orgId, kept!.id))!.toString();
  t.regex(
    stored,
    /^Authentication-Results: postern\.invalid;\r\n spf=none smtp\.mailfrom=there\.invalid;\r\n dkim=none;\r\n dmarc=none header\.from=there\.invalid;\r\n arc=none\r\nReceived: from there\.invalid \(\[127\.0\.0\.1\]\)\r\n by postern\.invalid with ESMTP id [\w-]{36}\r\n for <Orders@X\.invalid>;\r\n [^\r]+ \+0000\r\n/,
  );
  t.true(stored.endsWith(`+0000\r\n${raw}`), 'every byte of the mail follows');
  t.is(kept!.size, stored.length);

  const { body } = await world.call('GET', '/api/public/events?type=email.received');
  t.like(body.events[0], {
    type: 'email.received',
    recipient: 'Orders@X.invalid',
    data: {
      receivedId: kept!.id,
      subject: 'Order',
      automatic: true,
      dmarc: 'none',
      action: 'webhook',
      attachmentCount: 0,
      inReplyTo: null,
    },
  });
  t.is(world.mx[0]!.messages.length, 0, 'nothing was sent');
});

test('each recipient has its answer at RCPT', async (t) => {
  const world = await startReceiving(t);
  await world.route({ pattern: 'no@x.invalid', action: 'reject', reply: '551 5.1.6 Gone away' });
  await world.route({ pattern: 'orders@x.invalid', action: 'store' });
  await world.route({ pattern: 'drop@x.invalid', action: 'drop' });
  const answer = async (to: string) => (await world.receives(mail('x'), { to: [to] })).trim();
  t.is(await answer('nobody@x.invalid'), '550 5.1.1 No such address here');
  t.is(await answer('no@x.invalid'), '551 5.1.6 Gone away');
  t.is(await answer('ann@elsewhere.invalid'), '550 5.7.1 Relaying denied');
  t.regex(await answer('drop@x.invalid'), /^250/);
  t.deepEqual(await world.kept(), [], 'what is dropped is taken, and not kept');
  t.regex(await answer('orders@x.invalid'), /^250/);
  t.like(await world.kept(), [{ action: 'store' }]);
  t.regex(await answer('postmaster@postern.invalid'), /^250/, 'roles of our own come first');
  const metrics = readExposition(await (await fetch(`${world.url()}/metrics`)).text());
  for (const action of ['drop', 'store']) t.is(metrics.value('postern_received_mails_total', { action }), 1);
  const { id } = (await world.kept())[0]!;
  const { json } = cliOf(t, world);
  const of = async (...options: string[]) => json('logs --status received', ...options);
  const line = { event: 'received', orgId: world.orgId, from: 'ann@there.invalid', address: '127.0.0.1' };
  await until(async () => (await of()).length === 2);
  t.like(await of('--id', id), [
    { ...line, receivedId: id, recipient: 'orders@x.invalid', category: 'store' },
  ]);
  t.like(await of('--to', 'drop@x.invalid'), [{ ...line, category: 'drop' }]);
});

test('postmaster of a receiving domain is the operator, until a route takes it', async (t) => {
  const world = await startReceiving(t);
  await world.route({ pattern: 'orders@x.invalid' });
  t.regex(await world.receives(mail('x'), { to: ['PostMaster@x.invalid', 'orders@x.invalid'] }), /^250/);
  t.like(await world.db('inbound_mails').select('recipient', 'sender'), [
    { recipient: 'PostMaster@x.invalid', sender: 'ann@there.invalid' },
  ]);
  t.like(await world.kept(), [{ recipients: ['orders@x.invalid'] }]);
  t.regex(await world.receives(mail('x'), { to: ['postmaster@elsewhere.invalid'] }), /^550 5\.7\.1/);
  // Routes are read again after a second; this domain's were not read yet.
  await receiveAt(world.db, world.orgId, 'y.invalid');
  await world.route({ pattern: 'postmaster@y.invalid' });
  t.regex(await world.receives(mail('x'), { to: ['PostMaster@y.invalid'] }), /^250/);
  t.is((await world.db('inbound_mails')).length, 1);
  t.like(await world.kept(), [
    { recipients: ['PostMaster@y.invalid'] },
    { recipients: ['orders@x.invalid'] },
  ]);
});

test('a domain that has lost its verification lets its mail wait', async (t) => {
  const world = await startReceiving(t);
  await world.route();
  await world.db('domains').where({ name: 'x.invalid' }).update({ status: 'pending', failing_since: 1 });
  t.regex(await world.receives(mail('x')), /^451 4\.3\.5 x\.invalid is not verified/);
});

test('what is changed while a mail arrives is decided again at its end', async (t) => {
  const world = await startReceiving(t);
  const orders = await world.route();
  const begin = async () => {
    const talk = await world.connect();
    await talk.begins('<ann@there.invalid>', '<orders@x.invalid>');
    return talk;
  };
  /** The cached settings are a second old at most. */
  const isOver = (expected: string) =>
    until(async () => (await world.receives('')).startsWith(expected), { what: `the reply ${expected}` });
  const slow = await begin();
  await world.db('receiving_routes').where({ id: orders.id }).update({ action: 'reject', updated_at: 2 });
  await isOver('550');
  t.regex(await slow.says('Subject: Late\r\n\r\nLate\r\n.\r\n', ''), /^451 4\.3\.5 /);

  await world.db('receiving_routes').where({ id: orders.id }).update({ action: 'store', updated_at: 3 });
  await isOver('250');
  const slower = await begin();
  await deleteDomain(world.db, (await findDomain(world.db, world.orgId, 'x.invalid'))!);
  await isOver('550');
  t.regex(await slower.says('Subject: Late\r\n\r\nLate\r\n.\r\n', ''), /^451 4\.3\.5 /);
  t.is(
    (await world.kept()).find(({ subject }) => subject === 'Late'),
    undefined,
  );
});

test('a mail for two routes is two records, for two addresses of one route is one', async (t) => {
  const world = await startReceiving(t);
  const one = await world.route({ pattern: 'a+*@x.invalid' });
  const other = await world.route({ pattern: 'b@x.invalid', action: 'store' });
  await world.receives(mail('x'), { to: ['a+1@x.invalid', 'b@x.invalid', 'a+2@x.invalid'] });
  const kept = await world.kept();
  t.deepEqual(
    kept.map(({ routeId, recipients }) => [routeId, recipients]).sort(),
    [
      [one.id, ['a+1@x.invalid', 'a+2@x.invalid']],
      [other.id, ['b@x.invalid']],
    ].sort(),
  );
  for (const { id, recipients } of kept) {
    const raw = (await rawOf(world.db, world.orgId, id))!.toString();
    t.is(
      raw.includes(' for <'),
      recipients.length === 1,
      'recipients of one mail may not know of each other',
    );
  }
});

test('a mail to a return path and to an application is both', async (t) => {
  const world = await startReceiving(t);
  await world.route();
  const { path, emailId } = await world.delivered();
  const bounce = [
    'Subject: Undelivered',
    'Content-Type: text/plain',
    '',
    '<ann@there.invalid>: 550 5.1.1 unknown',
  ];
  t.regex(await world.receives(bounce.join('\r\n'), { to: [path, 'orders@x.invalid'], from: '' }), /^250/);
  t.like(await world.kept(), [{ recipients: ['orders@x.invalid'], summary: { isAutomatic: true } }]);
  t.truthy(await world.db('inbound_mails').where({ recipient: path }).first());
  t.truthy(emailId);
});

test('an answer to a mail of ours names it, for its own organization only', async (t) => {
  const world = await startReceiving(t);
  const other = await asNewTenant(world);
  await receiveAt(world.db, other.orgId, 'y.invalid');
  await world.route();
  await addRoute(world.db, other.orgId, { pattern: 'y.invalid', action: 'store' }, 1);
  const { body } = await world.send({ to: 'ann@there.invalid' });
  const answer = mail('Re: Hello', `References: <other@x.invalid> <${body.id}>`);
  await world.receives(answer);
  await world.receives(answer, { to: ['orders@y.invalid'] });
  t.like(await world.kept(), [{ inReplyTo: body.emailId }]);
  const told = (await world.call('GET', '/api/public/events?type=email.received')).body.events[0];
  t.deepEqual(told.data.inReplyTo, { emailId: body.emailId });
  t.like(await world.kept(other.orgId), [{ inReplyTo: null }]);
});

test('sizes: announced as soon as a domain receives, and of a route', async (t) => {
  const world = await startReceiving(t);
  const { db } = world;
  const announced = async () => /SIZE (\d+)/.exec((await world.connect()).received)![1];
  await world.route({ largest: 2000 });
  t.is(await announced(), String(25 * 1024 * 1024));
  const talk = await world.connect();
  await talk.says('MAIL FROM:<a@there.invalid> SIZE=2001\r\n', '250');
  t.regex(await talk.says('RCPT TO:<orders@x.invalid>\r\n', ''), /^552 5\.3\.4/);
  await talk.says('RSET\r\n', '250');
  await talk.says('MAIL FROM:<a@there.invalid> SIZE=9000000\r\n', '250');
  t.regex(await talk.says('RCPT TO:<postmaster@postern.invalid>\r\n', ''), /^552 5\.3\.4 .* 8388608/);
  t.regex(await world.receives(mail('x'.repeat(2000))), /^552 5\.3\.4/, 'nor undeclared');
  await db('domains').where({ name: 'x.invalid' }).update({ receives: false });
  await new Promise((resolve) => setTimeout(resolve, 1100));
  t.is(await announced(), String(8 * 1024 * 1024));
});

test('loops are refused: many hops, or several of our own', async (t) => {
  const world = await startReceiving(t);
  await world.route();
  const hops = (count: number, by: string) =>
    Array.from(
      { length: count },
      () => `Received: from a.invalid by ${by} with ESMTP id 1; Sat, 28 Nov 2026 10:00:00 +0000`,
    );
  t.regex(await world.receives(mail('x', ...hops(50, 'b.invalid'))), /^250/);
  t.regex(await world.receives(mail('x', ...hops(51, 'b.invalid'))), /^554 5\.4\.6/);
  t.regex(await world.receives(mail('x', ...hops(4, 'postern.invalid'))), /^250/);
  t.regex(await world.receives(mail('x', ...hops(5, 'Postern.invalid'))), /^554 5\.4\.6/);
});

test('DMARC: a route that honors a reject refuses after the message; others tell', async (t) => {
  const world = await startReceiving(t, {
    zone: {
      'there.invalid': { TXT: ['v=spf1 -all'] },
      '_dmarc.there.invalid': { TXT: ['v=DMARC1; p=reject'] },
      'friend.invalid': { TXT: ['v=spf1 ip4:127.0.0.1 -all'] },
      '_dmarc.friend.invalid': { TXT: ['v=DMARC1; p=reject'] },
    },
  });
  await world.route({ pattern: 'strict@x.invalid', dmarc: 'reject' });
  await world.route();
  const refused = await world.receives(mail('x'), { to: ['strict@x.invalid'] });
  t.regex(refused, /^550 5\.7\.1 Refused because of the DMARC policy of there\.invalid/);
  t.regex(await world.receives(mail('x')), /^250/);
  const { spf, dmarc } = (await world.kept())[0]!.summary.verdicts;
  t.deepEqual(spf, { result: 'fail', domain: 'there.invalid' });
  t.deepEqual(dmarc, { result: 'fail', domain: 'there.invalid', policy: 'reject' });
  const friendly = mail('x').replace('there.invalid', 'friend.invalid');
  t.regex(await world.receives(friendly, { to: ['strict@x.invalid'], from: 'ann@friend.invalid' }), /^250/);
  const mixed = await world.receives(mail('x'), { to: ['orders@x.invalid', 'strict@x.invalid'] });
  t.regex(mixed, /^452 4\.5\.3/, 'one reply cannot answer for both');
});

test('a full store defers, and what is deleted makes room again', async (t) => {
  const world = await startReceiving(t, { settings: { POSTERN_RECEIVED_STORE: '2K' } });
  await world.route();
  await world.route({ pattern: 'other@x.invalid' });
  const large = mail('x'.repeat(900));
  t.regex(await world.receives(large), /^250/);
  t.regex(await world.receives(large), /^452 4\.2\.2 /, 'after the message, which declared no size');
  const kept = await world.kept();
  t.is(kept.length, 1);
  const { size } = kept[0]!;
  const both = { to: ['orders@x.invalid', 'other@x.invalid'] };
  const half = mail('x'.repeat(900 - size + Math.floor(0.7 * (2048 - size))));
  t.regex(await world.receives(half, both), /^452 4\.2\.2 /, 'two records, and room for one');
  const talk = await world.connect();
  await talk.says('MAIL FROM:<a@there.invalid> SIZE=1500\r\n', '250');
  t.regex(await talk.says('RCPT TO:<orders@x.invalid>\r\n', ''), /^452 4\.2\.2/);
  t.is(await deleteOldReceived(world.db, world.clock.now() + 1), 1);
  t.is(await storedBytes(world.db, world.orgId), 0);
  t.regex(await world.receives(large), /^250/);
});

test('too much mail in a minute is deferred: of one sender, of one route, of one organization', async (t) => {
  const world = await startReceiving(t, { settings: { POSTERN_RECEIVED_PER_MINUTE: '8' } });
  await world.route();
  await world.route({ pattern: 'other@x.invalid' });
  const send = async (from: string, to = 'orders@x.invalid') => {
    const talk = await world.connect({ from });
    return (await world.receives(mail('x'), { talk, to: [to] })).slice(0, 9);
  };
  const answers = [];
  for (const from of [
    '127.0.0.9',
    '127.0.0.9',
    '127.0.0.9',
    '127.0.0.9',
    '127.0.0.9',
    '127.0.0.8',
    '127.0.0.8',
    '127.0.0.8',
  ])
    answers.push(await send(from));
  t.deepEqual(answers, [...Array(4).fill('250 2.6.0'), '451 4.7.1', '250 2.6.0', '250 2.6.0', '451 4.7.1']);
  const others = [];
  for (const from of ['127.0.0.7', '127.0.0.7', '127.0.0.7'])
    others.push(await send(from, 'other@x.invalid'));
  t.deepEqual(others, ['250 2.6.0', '451 4.7.1', '451 4.7.1'], 'as many as are free beside its own');
  await world.clock.advance('1m');
  t.is(await send('127.0.0.9'), '250 2.6.0');
});

test('naming recipients without a message uses up nothing of others', async (t) => {
  const world = await startReceiving(t, { settings: { POSTERN_RECEIVED_PER_MINUTE: '8' } });
  await world.route();
  for (const from of ['127.0.0.7', '127.0.0.8', '127.0.0.9']) {
    const talk = await world.connect({ from });
    await talk.says('MAIL FROM:<a@there.invalid>\r\n', '250');
    for (let n = 0; n < 8; n++) await talk.says(`RCPT TO:<o${n}@x.invalid>\r\n`, '250');
    await talk.says('RCPT TO:<more@x.invalid>\r\n', '451');
  }
  t.regex(await world.receives(mail('x')), /^250/);
});

test('a mail for two organizations is two: what one has no room for reaches the other', async (t) => {
  const world = await startReceiving(t, { settings: { POSTERN_RECEIVED_STORE: '2K' } });
  const other = await asNewTenant(world);
  await receiveAt(world.db, other.orgId, 'y.invalid');
  await world.route();
  await addRoute(world.db, other.orgId, { pattern: 'y.invalid', action: 'store' }, 1);
  await world.receives(mail('x'.repeat(900)));
  const talk = await world.connect();
  await talk.says('MAIL FROM:<a@there.invalid>\r\n', '250');
  await talk.says('RCPT TO:<orders@x.invalid>\r\n', '250');
  await talk.says('RCPT TO:<orders@y.invalid>\r\n', '452 4.5.3');
  t.regex(await world.receives(mail('x'.repeat(900)), { to: ['orders@y.invalid'] }), /^250/);
  t.is((await world.kept(other.orgId)).length, 1);
});

test('a header that is too large, and a mail in eight bits with addresses in UTF-8', async (t) => {
  const world = await startReceiving(t);
  await world.route();
  t.regex(await world.receives(mail('x', `X-Long: ${'a'.repeat(900_000)}`)), /^552 5\.3\.4 The header/);
  const raw = Buffer.from(
    mail('Grüße', 'Content-Type: text/plain; charset=utf-8').replace('Hello', 'Grüße\0'),
  );
  const talk = await world.connect();
  await talk.says(Buffer.from('MAIL FROM:<änn@there.invalid> SMTPUTF8 BODY=8BITMIME\r\n'), '250');
  await talk.says(Buffer.from('RCPT TO:<grüße@x.invalid>\r\n'), '250');
  await talk.says('DATA\r\n', '354');
  talk.write(raw.subarray(0, -3));
  talk.write('..\r\n');
  await talk.says('.\r\n', '250');
  const [kept] = await world.kept();
  t.like(kept, { subject: 'Grüße', recipients: ['grüße@x.invalid'], sender: 'änn@there.invalid' });
  t.true((await rawOf(world.db, world.orgId, kept!.id))!.subarray(-raw.length).equals(raw));
});
