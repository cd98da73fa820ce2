/** Mail submitted over SMTP goes the way of an API send: taken, signed, delivered, told; its own bytes kept. */
import { isAscii } from 'node:buffer';
import test from 'ava';
import fc from 'fast-check';
import { stallsAtMost } from '#lab/cost.ts';
import { kinds, oneKind } from '#lab/database/databases.ts';
import { verifyDkim } from '#lab/dkim.ts';
import { runs } from '#lab/runs.ts';
import {
  delivered,
  emailIdOf,
  loggedIn,
  messageTo,
  submissionWorlds,
  submit,
  tenantOf,
  transportOf,
} from '#lab/scenes/submission.ts';
import { until } from '#lab/until.ts';
import { readSources } from '#mail/record/rows/emails.ts';
import { loadSecrets } from '#platform/base/secrets.ts';
import { createMessageId } from '#platform/values/message-id.ts';

const worlds = submissionWorlds(kinds);

const from = 'From: App <app@sender.invalid>';
const signature = [{ domain: 'sender.invalid', result: 'pass' }];

test('nodemailer’s client, by STARTTLS and implicit TLS, PLAIN and LOGIN', async (t) => {
  const world = worlds[oneKind];
  const tenant = await tenantOf(world);
  for (const implicit of [false, true]) {
    for (const method of ['PLAIN', 'LOGIN']) {
      const transport = transportOf(tenant, { implicit, method });
      const info = await transport.sendMail({
        from: 'App <app@sender.invalid>',
        to: [`ann-${method}@there.invalid`],
        cc: 'bob@there.invalid',
        bcc: 'eve@there.invalid',
        subject: `Grüße ${method}`,
        text: '.dots\n\n..and more\n',
        html: '<p>Hello</p>',
        attachments: [{ filename: 'a.pdf', content: Buffer.from('%PDF') }],
      });
      transport.close();
      t.deepEqual(info.accepted, [`ann-${method}@there.invalid`, 'bob@there.invalid', 'eve@there.invalid']);
      const { raw } = await messageTo(world, `ann-${method}@there.invalid`);
      const verdicts = await verifyDkim(raw, world.dns);
      t.deepEqual(
        verdicts.map(({ domain, result }) => ({ domain, result })),
        signature,
      );
      t.false(/eve@/.test(raw.toString('latin1')), 'Bcc does not go out');
      const email = await delivered(tenant, emailIdOf(info.response));
      t.is(email.from, 'App <app@sender.invalid>');
      t.is(email.subject, `Grüße ${method}`);
      t.is(`<${email.id}>`, info.messageId);
      t.deepEqual(
        email.recipients.map(({ address, kind }: Record<string, string>) => [address, kind]),
        [
          [`ann-${method}@there.invalid`, 'to'],
          ['bob@there.invalid', 'cc'],
          ['eve@there.invalid', 'bcc'],
        ],
      );
    }
  }
});

test('the message goes out as it came, to the byte', async (t) => {
  const world = worlds[oneKind];
  const tenant = await tenantOf(world);
  const talk = await loggedIn(tenant);
  const kept = [
    'Received: from cms.invalid by relay.invalid; Fri, 2 Jan 2026 03:04:05 +0000',
    from,
    'to: undisclosed-recipients:;',
    'Subject: =?utf-8?Q?Gr=C3=BC=C3=9Fe?=',
    ' and a fold',
    'Date: Fri, 02 Jan 2026 03:04:05 +0000',
    'Message-ID: <one@cms.invalid>',
    'X-Odd:no space',
    'Content-Type: text/plain; charset=utf-8',
    'Content-Transfer-Encoding: 7bit',
    '',
    '.a dot, greetings, trailing space ',
    '',
    '..',
  ];
  const dropped = [
    'Return-Path: <x@y.invalid>',
    'Bcc: Secret <secret@there.invalid>,',
    ' other@there.invalid',
    'X-Postern-Tag-Order: 4711',
  ];
  const reply = await submit(
    talk,
    ['bytes@there.invalid'],
    [...kept.slice(0, 2), ...dropped, ...kept.slice(2)],
  );
  const message = await messageTo(world, 'bytes@there.invalid');
  const raw = message.raw.toString('utf8');
  const signatureEnd = raw.indexOf('\r\nReceived: from cms') + 2;
  const received = String.raw`Received: by postern\.invalid with ESMTPSA\s+id\s+${emailIdOf(reply)};\s+\w{3}, .* \+0000\r\nFeedback-ID: stream-transactional:org-\S+\r\nMIME-Version: 1\.0\r\n`;
  t.regex(raw.slice(0, signatureEnd), new RegExp(`^DKIM-Signature: [^\0]*\r\n${received}$`));
  t.notRegex(raw, /127\.0\.0\.1|client\.invalid/, 'where the application runs is not told');
  t.is(raw.slice(signatureEnd), `${kept.join('\r\n')}\r\n`);
  t.is((await verifyDkim(message.raw, world.dns))[0]!.result, 'pass');
  const email = await delivered(tenant, emailIdOf(reply));
  t.is(email.id, 'one@cms.invalid');
  t.is(email.subject, 'Grüße and a fold');
  t.deepEqual(email.tags, { Order: '4711' });
  t.true(message.from.endsWith('@postern.invalid'), 'the return path is ours');
});

test.serial(
  'a large message that is costly to read and to send stops nobody, and goes out as it came',
  async (t) => {
    const { world, ...tenant } = await tenantOf(worlds[oneKind]);
    const talk = await loggedIn({ world, ...tenant });
    const head = [from, 'Subject: Hi', 'Content-Type: multipart/mixed; boundary=b', '', '--b', '', ''];
    const body = Buffer.from(`${'\r\n'.repeat(2_000_000)}${'.\r\n'.repeat(1_000_000)}`);
    const stuffed = Buffer.concat([
      Buffer.from(head.join('\r\n')),
      Buffer.from(`${'\r\n'.repeat(2_000_000)}${'..\r\n'.repeat(1_000_000)}.\r\n`),
    ]);
    let sent = 0;
    await stallsAtMost(t, 200, async () => {
      sent += 1;
      await talk.says(`MAIL FROM:<a@b.invalid>\r\nRCPT TO:<large${sent}@there.invalid>\r\nDATA\r\n`, '250');
      await talk.reply('250');
      await talk.reply('354');
      await talk.says(stuffed, '250');
      await until(() => world.mx[0]!.messages.some(({ to }) => to[0] === `large${sent}@there.invalid`));
    });
    const { raw } = await messageTo(world, 'large1@there.invalid');
    t.true(raw.subarray(-body.length).equals(body));
  },
);

test('the envelope decides who gets the message; To and Cc, who is named', async (t) => {
  const world = worlds[oneKind];
  const tenant = await tenantOf(world);
  const talk = await loggedIn(tenant);
  const head = [
    from,
    'To: Team: =?utf-8?Q?J=C3=B6rg?= <JOERG@kinds.invalid>, "Lee, Ann" <ann@kinds.invalid>;, not-sent@kinds.invalid',
    'Cc: bob@kinds.invalid (Bob),',
    ' ann@kinds.invalid, broken@, <>',
    'bCC: eve@kinds.invalid',
    'Reply-To: Help <help@sender.invalid>, desk@sender.invalid',
    'Subject: Kinds',
  ];
  const envelope = ['eve', 'bob', 'joerg', 'ann', 'zoe'].map((local) => `${local}@kinds.invalid`);
  const answer = emailIdOf(await submit(talk, envelope, [...head, '', 'Hi']));
  const init = { headers: { authorization: `Bearer ${tenant.key}` } };
  const { body } = await world.call('GET', `/api/public/email/${answer}`, init);
  t.deepEqual(body.to, ['joerg@kinds.invalid', 'ann@kinds.invalid']);
  t.deepEqual(body.cc, ['bob@kinds.invalid']);
  t.deepEqual(body.bcc, ['eve@kinds.invalid', 'zoe@kinds.invalid']);
  t.is(body.replyTo, 'help@sender.invalid, desk@sender.invalid');
  const { recipients } = await world.db('emails').where({ id: answer }).first();
  t.deepEqual(JSON.parse(recipients).slice(0, 2), [
    'Jörg <joerg@kinds.invalid>',
    '"Lee, Ann" <ann@kinds.invalid>',
  ]);
});

const listing = fc.constantFrom('To', 'Cc', 'Bcc', 'bcc', 'BCC', 'Resent-Bcc', null);

test('no byte that a recipient of a submitted mail receives names one that is only in Bcc', async (t) => {
  const world = worlds[oneKind];
  const tenant = await tenantOf(world);
  const talk = await loggedIn(tenant);
  let count = 0;
  const property = fc.asyncProperty(fc.array(listing, { minLength: 1, maxLength: 5 }), async (listings) => {
    const all = listings.map((field) => ({ field, address: `hid${count++}hid@there.invalid` }));
    const fields = Object.entries(Object.groupBy(all, ({ field }) => (field ?? 'none').toLowerCase()))
      .filter(([name]) => name !== 'none')
      .map(
        ([, list]) => `${list![0]!.field}: ${list!.map(({ address }) => `N <${address}>`).join(',\r\n ')}`,
      );
    const to = all.map(({ address }) => address);
    await submit(talk, to, [...fields, from, 'Subject: Hi', '', 'Hi']);
    for (const address of to) {
      const message = await messageTo(world, address);
      const bytes = `${message.from}\n${message.raw.toString('latin1')}`;
      for (const each of all) t.is(bytes.includes(each.address), /^(to|cc)$/i.test(each.field ?? ''));
    }
  });
  await fc.assert(property, { numRuns: runs(100) });
});

test('a submitted message can be scheduled, and can expire', async (t) => {
  const world = worlds[oneKind];
  const tenant = await tenantOf(world);
  const talk = await loggedIn(tenant);
  const at = new Date(world.clock.now() + 3_600_000).toISOString();
  const reply = await submit(
    talk,
    ['later@there.invalid'],
    [
      `X-Postern-Scheduled-At: ${at}`,
      'X-Postern-Expires-After: 600',
      'From: app@sender.invalid',
      '',
      'Hi',
      '',
    ],
  );
  const email = await delivered(tenant, emailIdOf(reply));
  t.like(email, {
    status: 'scheduled',
    scheduledAt: at,
    expiresAt: new Date(Date.parse(at) + 600_000).toISOString(),
  });
  const [raw] = await readSources(world.db, email.emailId);
  t.notRegex(raw!.toString(), /X-Postern/);
});

test('Date, Message-ID, MIME-Version and To are added where they are missing', async (t) => {
  const world = worlds[oneKind];
  const tenant = await tenantOf(world);
  const reply = await submit(
    await loggedIn(tenant),
    ['missing@there.invalid'],
    [from, 'Subject: Hi', '', 'Hi'],
  );
  const message = await messageTo(world, 'missing@there.invalid');
  const id = createMessageId(loadSecrets(world.config), 'postern.invalid')(emailIdOf(reply)!);
  t.true(reply.includes(`<${id}>`));
  const raw = message.raw.toString();
  t.true(raw.includes(`\r\nMessage-ID: <${id}>\r\n`));
  t.true(raw.includes('\r\nMIME-Version: 1.0\r\nTo: undisclosed-recipients:;\r\n'));
  const date = /\r\nDate: (.*)\r\n/.exec(raw)![1]!;
  t.is(Math.floor(world.clock.now() / 1000) * 1000, Date.parse(date));
  t.is((await verifyDkim(message.raw, world.dns))[0]!.result, 'pass');
});

test('the same Message-ID to the same recipients is sent once', async (t) => {
  const world = worlds[oneKind];
  const tenant = await tenantOf(world, { quota: 10 });
  const talk = await loggedIn(tenant);
  const mail = [from, 'Subject: Hi', 'Message-ID: <1@cms.invalid>', '', 'Hi'];
  const first = await submit(talk, ['ann@there.invalid', 'bob@there.invalid'], mail);
  const again = await submit(await loggedIn(tenant), ['bob@there.invalid', 'Ann@there.invalid'], mail);
  t.is(emailIdOf(again), emailIdOf(first));
  const others = await submit(talk, ['joe@there.invalid'], mail);
  t.not(emailIdOf(others), emailIdOf(first), 'a client may bring its recipients in several transactions');
  const other = await submit(talk, ['joe@there.invalid'], [...mail, 'and more']);
  t.not(emailIdOf(other), emailIdOf(others), 'another content is another mail');
  const { quota_used: used } = await world
    .db('organizations')
    .where({ id: tenant.orgId })
    .first('quota_used');
  t.is(used, 4);
});

test('tracking where the domain has it on, in the HTML alone', async (t) => {
  const world = worlds[oneKind];
  const tenant = await tenantOf(world);
  await world
    .db('domains')
    .where({ org_id: tenant.orgId })
    .update({ open_tracking: true, click_tracking: true });
  const talk = await loggedIn(tenant);
  const parts = [
    ...['--b', 'Content-Type: text/plain', '', 'https://a.invalid/', '--b', 'Content-Type: text/html', ''],
    ...['<a href="https://a.invalid/x">x</a>', '--b--'],
  ];
  const mail = [from, 'Subject: Hi', 'MIME-Version: 1.0', 'Content-Type: multipart/alternative; boundary=b'];
  await submit(talk, ['tracked-1@there.invalid', 'tracked-2@there.invalid'], [...mail, '', ...parts]);
  const first = await messageTo(world, 'tracked-1@there.invalid');
  const second = await messageTo(world, 'tracked-2@there.invalid');
  t.notDeepEqual(first.raw, second.raw, 'each recipient has links of its own');
  for (const { raw } of [first, second]) {
    t.is((await verifyDkim(raw, world.dns))[0]!.result, 'pass');
    const text = raw.toString();
    t.true(text.includes('\r\n\r\nhttps://a.invalid/\r\n--b\r\n'), 'the text part is as it was');
    t.regex(text, /<a href="http:\/\/127\.0\.0\.1:\d+\/t\/c\//);
    t.regex(text, /<img src="http:\/\/127\.0\.0\.1:\d+\/t\/o\//);
  }
});

test('8-bit text goes out as ASCII, and an address beyond ASCII with SMTPUTF8', async (t) => {
  const world = worlds[oneKind];
  const tenant = await tenantOf(world);
  const talk = await loggedIn(tenant);
  const ehlo = await talk.says('EHLO client.invalid\r\n', '250');
  t.regex(ehlo, /^250[- ]8BITMIME\r?$/m);
  t.regex(ehlo, /^250[- ]SMTPUTF8\r?$/m);
  t.notRegex(ehlo, /DSN/, 'its parameters are refused');
  const mail = [from, 'To: Jörg <joerg@there.invalid>', 'Subject: Grüße', 'Content-Transfer-Encoding: 8bit'];
  await talk.says('MAIL FROM:<app@sender.invalid> BODY=8BITMIME SMTPUTF8\r\n', '250');
  await talk.says('RCPT TO:<jörg@there.invalid>\r\n', '250');
  await talk.says('DATA\r\n', '354');
  await talk.says(`${[...mail, '', 'Grüße', '.'].join('\r\n')}\r\n`, '250');
  const { raw, params } = await messageTo(world, 'jörg@there.invalid');
  t.true(params.SMTPUTF8);
  t.regex(raw.toString(), /^Received: by postern\.invalid with UTF8SMTPSA/m);
  t.is(params.BODY, undefined);
  t.true(isAscii(raw));
  t.is((await verifyDkim(raw, world.dns))[0]!.result, 'pass');
});
