/**
 * What programs write that a relay can repair (RFC 6409 section 8): PHP's mail() and cron (WordPress #36094, php/php-src#8086),
 * printers, scanners, old Outlook, home-grown scripts (roundcube/roundcubemail#6743, Mailpit#142). The message arrives as it was
 * meant, with a valid signature, and the mail log names what was repaired.
 */
import { isAscii } from 'node:buffer';
import { readFile } from 'node:fs/promises';
import test, { type ExecutionContext } from 'ava';
import PostalMime, { type Email } from 'postal-mime';
import { mailLogFile } from '../../src/mail/mail-log.ts';
import { oneKind } from '../lab/database/databases.ts';
import { verifyDkim } from '../lab/dkim.ts';
import {
  loggedIn,
  messageTo,
  submissionWorlds,
  submit,
  type Tenant,
  tenantOf,
} from '../lab/scenes/submission.ts';
import { until } from '../lab/until.ts';

const worlds = submissionWorlds([oneKind], { settings: { POSTERN_SMTP_PER_CLIENT: '500' } });
let made: Promise<Tenant> | undefined;
const tenant = () => (made ??= tenantOf(worlds[oneKind]));
let count = 0;

interface Sent {
  to: string;
  raw: Buffer;
  email: Email;
}

/** Latin-1 carries the octets. */
async function sent(t: ExecutionContext, lines: string[]): Promise<Sent> {
  const to = `repair${count++}@there.invalid`;
  const talk = await loggedIn(await tenant());
  await talk.says('MAIL FROM:<>\r\n', '250');
  await talk.says(`RCPT TO:<${to}>\r\n`, '250');
  await talk.says('DATA\r\n', '354');
  await talk.says(Buffer.from(`${lines.join('\r\n')}\r\n.\r\n`, 'latin1'), '250');
  talk.close();
  const { raw } = await messageTo(worlds[oneKind], to);
  t.is((await verifyDkim(raw, worlds[oneKind].dns))[0]!.result, 'pass');
  t.true(isAscii(raw));
  t.true(
    raw
      .toString('latin1')
      .split('\r\n')
      .every((line) => line.length <= 998),
  );
  return { to, raw, email: await PostalMime.parse(raw) };
}

function fieldsOf(raw: Buffer, name: string): string[] {
  const head = raw
    .toString('latin1')
    .split('\r\n\r\n')[0]!
    .replace(/\r\n[ \t]+/g, ' ');
  const isField = (line: string) => line.toLowerCase().startsWith(`${name.toLowerCase()}:`);
  return head
    .split('\r\n')
    .filter(isField)
    .map((line) => line.slice(name.length + 1).trim());
}

const from = 'From: App <app@sender.invalid>';
const date = 'Date: Fri, 02 Jan 2026 03:04:05 +0000';

/** Lines of the header; then a field of the message that arrives, with its values. */
const headers: Record<string, [lines: string[], field: string, values: (string | RegExp)[]]> = {
  'From twice': [[from, from], 'From', ['App <app@sender.invalid>']],
  'From twice, folded and in other case': [
    [from, 'from: App\r\n <APP@sender.invalid>'],
    'From',
    ['App <app@sender.invalid>'],
  ],
  'Subject twice, once encoded': [[from, 'Subject: Hi', 'Subject: =?utf-8?Q?Hi?='], 'Subject', ['Hi']],
  'Date twice': [[from, date, date], 'Date', ['Fri, 02 Jan 2026 03:04:05 +0000']],
  'Message-ID twice, once without brackets': [
    [from, 'Message-ID: <a@b.invalid>', 'Message-Id: a@b.invalid'],
    'Message-ID',
    ['<a@b.invalid>'],
  ],
  'MIME-Version twice': [[from, 'MIME-Version: 1.0', 'Mime-Version: 1.0'], 'MIME-Version', ['1.0']],
  'Content-Type twice': [
    [from, 'Content-Type: text/plain; charset=utf-8', 'Content-type: text/plain; charset=UTF-8'],
    'Content-Type',
    ['text/plain; charset=utf-8'],
  ],
  'To twice, with others (RFC 5322 section 4.5.3)': [
    [from, 'To: a@there.invalid', 'To: B <b@there.invalid>'],
    'To',
    ['a@there.invalid, B <b@there.invalid>'],
  ],
  'an empty Reply-To, Cc and Sender': [[from, 'Reply-To:', 'Cc: ', 'Sender:'], 'Reply-To', []],
  'an empty Cc beside one': [[from, 'Cc:', 'Cc: a@there.invalid'], 'Cc', ['a@there.invalid']],
  'a Message-ID without brackets': [
    [from, 'Message-ID: abc@cms.invalid'],
    'Message-ID',
    ['<abc@cms.invalid>'],
  ],
  'a Message-ID with one bracket': [
    [from, 'Message-ID: <abc@cms.invalid'],
    'Message-ID',
    ['<abc@cms.invalid>'],
  ],
  'a Message-ID with blanks': [
    [from, 'Message-ID: < abc@cms.invalid >'],
    'Message-ID',
    ['<abc@cms.invalid>'],
  ],
  'an encoded Message-ID': [
    [from, 'Message-ID: =?utf-8?Q?=3Cabc=40cms=2Einvalid=3E?='],
    'Message-ID',
    ['<abc@cms.invalid>'],
  ],
  'an empty Message-ID': [[from, 'Message-ID:'], 'Message-ID', [/^<.{20,}@postern\.invalid>$/]],
  'a Message-ID of brackets': [[from, 'Message-ID: <>'], 'Message-ID', [/^<.{20,}@postern\.invalid>$/]],
  'a Message-ID of words': [[from, 'Message-ID: not an id'], 'Message-ID', [/^<.{20,}@postern\.invalid>$/]],
  'no Message-ID': [[from], 'Message-ID', [/^<.{20,}@postern\.invalid>$/]],
  'a From that is its own name': [
    ['From: app@sender.invalid <app@sender.invalid>'],
    'From',
    ['"app@sender.invalid" <app@sender.invalid>'],
  ],
  'a comma in From': [['From: Doe, John <app@sender.invalid>'], 'From', ['"Doe, John" <app@sender.invalid>']],
  'a comma and a dot in From': [
    ['From: Acme, Inc. <app@sender.invalid>'],
    'From',
    ['"Acme, Inc." <app@sender.invalid>'],
  ],
  'a colon in From': [
    ['From: Acme: News <app@sender.invalid>'],
    'From',
    ['"Acme: News" <app@sender.invalid>'],
  ],
  'an @ in From': [['From: Ann @ Acme <app@sender.invalid>'], 'From', ['"Ann @ Acme" <app@sender.invalid>']],
  'a From that is encoded as a whole': [
    ['From: =?utf-8?Q?J=C3=B6rg_=3Capp=40sender=2Einvalid=3E?='],
    'From',
    ['=?UTF-8?Q?J=C3=B6rg?= <app@sender.invalid>'],
  ],
  'names in To': [
    [from, 'To: Doe, Ann <a@there.invalid>, b@there.invalid <b@there.invalid>, c@there.invalid'],
    'To',
    ['"Doe, Ann" <a@there.invalid>, "b@there.invalid" <b@there.invalid>, c@there.invalid'],
  ],
  'names in Cc, with quotes around one': [
    [from, 'Cc: "Lee, Ann" <a@there.invalid>, Doe, John <b@there.invalid>'],
    'Cc',
    ['"Lee, Ann" <a@there.invalid>, "Doe, John" <b@there.invalid>'],
  ],
  'semicolons in To': [
    [from, 'To: a@there.invalid; B <b@there.invalid>'],
    'To',
    ['a@there.invalid, B <b@there.invalid>'],
  ],
  'a comma in Reply-To': [
    [from, 'Reply-To: Doe, John <a@there.invalid>'],
    'Reply-To',
    ['"Doe, John" <a@there.invalid>'],
  ],
  'a comma in Sender': [
    [from, 'Sender: Doe, John <app@sender.invalid>'],
    'Sender',
    ['"Doe, John" <app@sender.invalid>'],
  ],
  'groups and comments stay': [
    [from, 'To: Team: a@there.invalid, "B, C" <b@there.invalid>; (all), D. E. <d@there.invalid>'],
    'To',
    ['Team: a@there.invalid, "B, C" <b@there.invalid>; (all), D. E. <d@there.invalid>'],
  ],
  'a To that names nobody': [[from, 'To: undisclosed-recipients:;'], 'To', ['undisclosed-recipients:;']],
  'a local name in To': [[from, 'To: root'], 'To', ['root']],
  'an encoded List-Unsubscribe': [
    [from, 'List-Unsubscribe: =?utf-8?Q?=3Chttps=3A//a=2Einvalid/u=3Fx=3D1=3E?='],
    'List-Unsubscribe',
    ['<https://a.invalid/u?x=1>'],
  ],
  'an encoded List-Unsubscribe of two words and two URLs': [
    [
      from,
      `List-Unsubscribe: =?utf-8?B?${Buffer.from('<mailto:u@a.invalid>,').toString('base64')}?=\r\n =?utf-8?B?${Buffer.from(' <https://a.invalid/u>').toString('base64')}?=`,
    ],
    'List-Unsubscribe',
    ['<mailto:u@a.invalid>, <https://a.invalid/u>'],
  ],
  'encoded References': [
    [from, 'References: =?utf-8?Q?=3Ca=40b=2Einvalid=3E_=3Cc=40d=2Einvalid=3E?='],
    'References',
    ['<a@b.invalid> <c@d.invalid>'],
  ],
  'a blank before the colon': [[from, 'Subject : Hi', 'X-A\t: b'], 'Subject', ['Hi']],
  'a line of mbox': [
    ['From app@sender.invalid Fri Jan  2 03:04:05 2026', from],
    'From',
    ['App <app@sender.invalid>'],
  ],
  'a Date of ISO 8601': [
    [from, 'Date: 2026-01-02T03:04:05+01:00'],
    'Date',
    ['Fri, 02 Jan 2026 02:04:05 +0000'],
  ],
  'a Date that cannot be read': [
    [from, 'Date: yesterday'],
    'Date',
    [/^\w{3}, \d\d \w{3} \d{4} [\d:]{8} \+0000$/],
  ],
  'an empty Date': [[from, 'Date:'], 'Date', [/^\w{3}, \d\d \w{3} \d{4} [\d:]{8} \+0000$/]],
  'an old Date stays': [[from, 'Date: 2 Jan 26 03:04 GMT'], 'Date', ['2 Jan 26 03:04 GMT']],
};

for (const [name, [lines, field, values]] of Object.entries(headers)) {
  test(`header: ${name}`, async (t) => {
    const { raw } = await sent(t, [...lines, '', 'Hi']);
    const found = fieldsOf(raw, field);
    t.is(found.length, values.length, String(found));
    for (const [index, value] of values.entries()) {
      if (typeof value === 'string') t.is(found[index], value);
      else t.regex(found[index]!, value);
    }
  });
}

const subjects: Record<string, [octets: string, text: string]> = {
  'windows-1252': ['Price: 5 \x80 \x96 \x93now\x94', 'Price: 5 € – “now”'],
  'Latin-1': ['Gr\xfc\xdfe', 'Grüße'],
  'UTF-8': [Buffer.from('Grüße €').toString('latin1'), 'Grüße €'],
};

for (const [name, [octets, text]] of Object.entries(subjects)) {
  test(`undeclared ${name} in the header and, if it is certain, the body`, async (t) => {
    const { email } = await sent(t, [from, `Subject: ${octets}`, 'MIME-Version: 1.0', '', octets]);
    t.is(email.subject, text);
    // It could be in any of the charsets of ISO 8859.
    if (name === 'Latin-1') return;
    t.is(email.text?.trim(), text);
    const typed = await sent(t, [
      from,
      'MIME-Version: 1.0',
      'Content-Type: text/html',
      '',
      `<p>${octets}</p>`,
    ]);
    t.is(typed.email.html?.trim(), `<p>${text}</p>`);
    const inParts = await sent(t, [
      ...[from, 'MIME-Version: 1.0', 'Content-Type: multipart/alternative; boundary=b', '', '--b', ''],
      ...[octets, '--b', 'Content-Type: text/html; charset=us-ascii', '', `<p>${octets}</p>`, '--b--'],
    ]);
    t.is(inParts.email.text?.trim(), text);
    t.is(inParts.email.html?.trim(), `<p>${text}</p>`);
  });
}

test('ISO-8859-1 with octets that only windows-1252 has', async (t) => {
  const { email } = await sent(t, [from, 'Content-Type: text/plain; charset=iso-8859-1', '', '5 \x80']);
  t.is(email.text?.trim(), '5 €');
});

const word = 'lorem ipsum '.repeat(200);

test('long lines of a body, in every place where they can be', async (t) => {
  const long = `${word}${'x'.repeat(2000)}`;
  t.is((await sent(t, [from, '', long])).email.text?.trimEnd(), long);
  const parts = await sent(t, [
    ...[
      from,
      'MIME-Version: 1.0',
      'Content-Type: multipart/mixed; boundary=b',
      '',
      `pre ${long}`,
      '--b',
      '',
      long,
    ],
    ...[
      '--b',
      'Content-Type: text/html; charset=utf-8',
      'Content-Transfer-Encoding: 7bit',
      '',
      `<p>${long}</p>`,
    ],
    ...[
      '--b',
      'Content-Type: application/json',
      'Content-Disposition: attachment; filename=a.json',
      '',
      `"${long}"`,
    ],
    ...['--b', 'Content-Type: application/pdf', 'Content-Transfer-Encoding: base64', ''],
    ...[Buffer.from(long).toString('base64')],
    ...['--b', 'Content-Type: text/plain', 'Content-Transfer-Encoding: quoted-printable', '', `${long}=3D`],
    ...['--b', 'Content-Type: message/rfc822', '', 'Subject: inner', '', long, '--b--', long],
  ]);
  t.is(parts.email.html?.match(/<p>(.*)<\/p>/s)?.[1], long);
  t.true(parts.email.text?.includes(long));
  t.true(parts.email.text?.includes(`${long}=`));
  const files = parts.email.attachments.map(({ content }) => Buffer.from(content as ArrayBuffer).toString());
  t.true(files.includes(`"${long}"`));
  t.true(files.includes(long));
});

test('long lines of a header', async (t) => {
  const people = Array.from({ length: 60 }, (_, n) => `Person ${n} <p${n}@there.invalid>`).join(', ');
  const references = Array.from({ length: 60 }, (_, n) => `<${n}.${'x'.repeat(20)}@there.invalid>`);
  const { raw, email } = await sent(t, [
    ...[from, `To: ${people}`, `Subject: ${word.slice(0, 980)}`, `References: ${references.join('')}`],
    ...[`X-Long: ${word}`, `X-Longer: ${'y'.repeat(1500)}`, 'Content-Type: text/plain', '', 'Hi'],
  ]);
  t.is(email.to?.length, 60);
  t.is(email.references, references.join(' '));
  t.is(fieldsOf(raw, 'X-Long')[0], word.trim());
});

const refused: Record<string, [lines: string[], reason: RegExp]> = {
  'two different From': [
    [from, 'From: Other <other@sender.invalid>', '', 'Hi'],
    /from: the field occurs more than once/,
  ],
  'two different Subjects': [
    [from, 'Subject: a', 'Subject: b', '', 'Hi'],
    /subject: the field occurs more than once/,
  ],
  'two senders in From': [
    ['From: a@sender.invalid, b@sender.invalid', '', 'Hi'],
    /one From field with one address/,
  ],
  'another address as the name': [['From: a@other.invalid <a@sender.invalid>', '', 'Hi'], /one From field/],
  'a name, and no address': [['From: Doe, John', '', 'Hi'], /one From field with one address/],
  'a long line in a signed part': [
    [from, 'Content-Type: multipart/signed; boundary=b', '', '--b', '', 'x'.repeat(1200), '--b--'],
    /line longer than 998 octets/,
  ],
};

for (const [name, [lines, reason]] of Object.entries(refused)) {
  test(`stays refused: ${name}`, async (t) => {
    t.regex(await submit(await loggedIn(await tenant()), ['no@there.invalid'], lines, '554 5.6.0'), reason);
  });
}

test('the mail log names what was repaired', async (t) => {
  const lines = ['From: Doe, John <app@sender.invalid>', 'Message-ID: 1@a.invalid', '', 'x'.repeat(1200)];
  t.regex(
    await acceptedLine(t, lines),
    / from "Doe, John" <app@sender.invalid>; repaired: from, message-id, long lines$/,
  );
  t.notRegex(await acceptedLine(t, [from, 'Message-ID: <1@a.invalid>', '', 'Hi']), /repaired/);
});

/** The message's text in the mail log's line about its acceptance. */
async function acceptedLine(t: ExecutionContext, lines: string[]): Promise<string> {
  const { to } = await sent(t, lines);
  const file = mailLogFile(worlds[oneKind].config.dataDir);
  const line = async () =>
    (await readFile(file, 'utf8'))
      .split('\n')
      .find((text) => /"event":"accepted"/.test(text) && text.includes(to));
  return JSON.parse(await until(line, { what: `the line about ${to}` })).msg;
}

test('a message that is right is not touched', async (t) => {
  const { raw } = await sent(t, [
    from,
    'Subject: ok',
    date,
    'Message-ID: <1@a.invalid>',
    'X-A:  b ',
    '',
    'Hi',
  ]);
  t.true(
    raw.includes(`${from}\r\nSubject: ok\r\n${date}\r\nMessage-ID: <1@a.invalid>\r\nX-A:  b \r\n\r\nHi\r\n`),
  );
});
