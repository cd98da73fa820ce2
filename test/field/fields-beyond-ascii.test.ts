/**
 * Text beyond ASCII in any field that RFC 5322, 2045, 2183, 2369, 2919 and 8058 name, in UTF-8 and in Latin-1, at the top of a
 * message, in a part and in an attached message, as programs submit it (mikel/mail#1331, PHPMailer/PHPMailer#2893): nothing over
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
  for (const to of sent) t.true(isAscii((await messageTo(world, to)).raw), to);
  t.is(world.mx[0]!.messages.length, sent.length);
  await areSigned(t, world);
  const texts = world.mx[0]!.messages.map(async ({ raw }) => (await PostalMime.parse(raw)).text);
  const unread = (await Promise.all(texts)).filter((text) => !text?.startsWith('Grüße'));
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
