/**
 * Text beyond ASCII in any field that RFC 5322, 2045, 2183, 2369, 2919 and 8058 name, in UTF-8 and in Latin-1, at the top of a
 * message, in a part and in an attached message, as programs submit it: nothing over
 * 0x7F is sent to a host that offers neither SMTPUTF8 nor 8BITMIME, nothing bounces there, and every signature verifies.
 */
import { isAscii } from 'node:buffer';
import test from 'ava';
import PostalMime from 'postal-mime';
import { oneKind } from '#lab/database/databases.ts';
import { areSigned } from '#lab/dkim.ts';
import {
  delivered,
  emailIdOf,
  loggedIn,
  messageTo,
  submissionWorlds,
  tenantOf,
} from '#lab/scenes/submission.ts';
import { table } from '#lab/table.ts';

const worlds = submissionWorlds([oneKind], {
  exchangers: [{ extensions: ['PIPELINING', 'SIZE 26214400'] }],
  settings: { POSTERN_SMTP_PER_CLIENT: '500' },
});

const fields: [name: string, values: string[]][] = table('submission/fields-beyond-ascii');

/** The field at the top, in a part, and in an attached message. */
function messageWith(name: string, value: string, charset: string): string[] {
  const field = `${name}: ${value}`;
  const isContent = name === 'Content-Type' || name === 'Content-Transfer-Encoding';
  return [
    ...(name === 'From' ? [] : ['From: App <app@sender.invalid>']),
    ...(name === 'MIME-Version' ? [] : ['MIME-Version: 1.0']),
    ...(isContent ? [] : [field]),
    ...['Content-Type: multipart/mixed; boundary=b', '', 'Präambel', '--b'],
    ...[`Content-Type: text/plain; charset=${charset}`, '', 'Grüße', '--b', field, '', 'Grüße'],
    ...['--b', 'Content-Type: message/rfc822', '', 'Subject: x', field, '', 'Grüße', '--b--', 'Größe'],
  ];
}

test('no field is sent in eight bits, and none bounces', async (t) => {
  const world = worlds[oneKind];
  const talk = await loggedIn(await tenantOf(world));
  const mails = fields.flatMap(([name, values]) => values.map((value) => ({ name, value })));
  const sent: string[] = [];
  for (const [index, { name, value }] of mails.entries()) {
    for (const charset of ['utf8', 'latin1'] as const) {
      const to = `${charset}${index}@there.invalid`;
      await talk.begins('<>', `<${to}>`);
      await talk.says(
        Buffer.from(`${messageWith(name, value, charset).join('\r\n')}\r\n.\r\n`, charset),
        '250',
      );
      sent.push(to);
    }
  }
  talk.close();
  const texts: Record<string, string | undefined> = {};
  for (const to of sent) {
    const { raw } = await messageTo(world, to);
    t.true(isAscii(raw), to);
    texts[to] = (await PostalMime.parse(raw)).text;
  }
  await areSigned(t, world);
  const unread = Object.entries(texts).filter(([, text]) => !text?.startsWith('Grüße'));
  t.deepEqual(unread, []);
});

test('a signed part of eight bits bounces at such a host, and is not sent', async (t) => {
  const tenant = await tenantOf(worlds[oneKind]);
  const talk = await loggedIn(tenant);
  await talk.begins('<>', '<signed@there.invalid>');
  const lines = [
    ...['From: App <app@sender.invalid>', 'Content-Type: multipart/signed; boundary=b', '', '--b', ''],
    ...['Größe', '--b', 'Content-Type: application/pgp-signature', '', 'x', '--b--'],
  ];
  const reply = await talk.says(Buffer.from(`${lines.join('\r\n')}\r\n.\r\n`), '250');
  talk.close();
  const { recipients } = await delivered(tenant, emailIdOf(reply));
  t.is(recipients[0].status, 'bounced');
  t.regex(JSON.stringify(recipients[0]), /8BITMIME/);
});

async function arrived(to: string, lines: string[]) {
  const talk = await loggedIn(await tenantOf(worlds[oneKind]));
  await talk.begins('<>', `<${to}>`);
  await talk.says(Buffer.from(`${['From: app@sender.invalid', ...lines].join('\r\n')}\r\n.\r\n`), '250');
  talk.close();
  return (await messageTo(worlds[oneKind], to)).raw.toString('latin1');
}

test('reports, digests and files inside are sent in ASCII, and are what they were', async (t) => {
  const receipt = await arrived('receipt@there.invalid', [
    ...[
      'Content-Type: multipart/report; report-type=disposition-notification; boundary=b',
      '',
      '--b',
      '',
      'Read',
    ],
    // jstedfast/MimeKit#1064
    ...[
      '--b',
      'Content-Type: message/disposition-notification',
      '',
      'Reporting-UA: mail.invalid; 백석대학교',
    ],
    ...['Final-Recipient: rfc822;a@there.invalid', '--b--'],
  ]);
  t.regex(
    receipt,
    /\r\nReporting-UA: mail.invalid; =\?UTF-8\?Q\?(?:=[0-9A-F]{2}|\?=\r\n =\?UTF-8\?Q\?)+\?=\r\nFinal-R/,
  );
  const digest = await arrived('digest@there.invalid', [
    ...['Content-Type: multipart/digest; boundary=b', '', '--b', '', 'Subject: Größe', '', 'Grüße', '--b--'],
  ]);
  t.regex(digest, /\r\n--b\r\n\r\nSubject: =\?UTF-8\?Q\?Gr=C3=B6=C3=9Fe\?=\r\n/);
  const inside = 'Content-Type: message/rfc822\r\n\r\n'.repeat(8);
  const deep = await arrived('deep@there.invalid', [`${inside}Subject: x`, '', 'Grüße']);
  t.regex(deep, /Content-Type: application\/octet-stream\r\nContent-Transfer-Encoding: base64\r\n/);
  await areSigned(t, worlds[oneKind]);
});

test('Mailgun’s messages.mime', async (t) => {
  const world = worlds[oneKind];
  const { key } = await tenantOf(world);
  const form = new FormData();
  form.append('to', 'mime@there.invalid');
  const lines = [
    'From: app@sender.invalid',
    'List-Id: Größe <l.x.invalid>',
    'List-Unsubscribe: https://x.invalid/ü',
  ];
  form.append('message', new Blob([[...lines, '', 'Grüße', ''].join('\n')]), 'message.mime');
  const authorization = `Basic ${Buffer.from(`api:${key}`).toString('base64')}`;
  const url = `${world.url()}/v3/sender.invalid/messages.mime`;
  t.is((await fetch(url, { method: 'POST', headers: { authorization }, body: form })).status, 200);
  const { raw } = await messageTo(world, 'mime@there.invalid');
  t.true(isAscii(raw));
  t.true(
    raw.includes(
      'List-Id: =?UTF-8?Q?Gr=C3=B6=C3=9Fe?= <l.x.invalid>\r\nList-Unsubscribe: <https://x.invalid/%C3%BC>',
    ),
  );
});
