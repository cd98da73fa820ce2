/**
 * What programs write that a relay can repair (RFC 6409 section 8): PHP's mail() and cron (WordPress #36094, php/php-src#8086),
 * printers, scanners, old Outlook, home-grown scripts (roundcube/roundcubemail#6743, Mailpit#142). The message arrives as it was
 * meant, with a valid signature, and the mail log names what was repaired.
 */
import { isAscii } from 'node:buffer';
import { readFile } from 'node:fs/promises';
import test, { type ExecutionContext } from 'ava';
import PostalMime, { type Email } from 'postal-mime';
import { oneKind } from '#lab/database/databases.ts';
import { verifyDkim } from '#lab/dkim.ts';
import {
  loggedIn,
  messageTo,
  submissionWorlds,
  submit,
  type Tenant,
  tenantOf,
} from '#lab/scenes/submission.ts';
import { table } from '#lab/table.ts';
import { until } from '#lab/until.ts';
import { mailLogFile } from '#platform/values/mail-log.ts';

const worlds = submissionWorlds([oneKind], { settings: { POSTERN_SMTP_PER_CLIENT: '500' } });
let made: Promise<Tenant> | undefined;
const tenant = () => (made ??= tenantOf(worlds[oneKind]));
let count = 0;

interface Sent {
  to: string;
  raw: Buffer;
  email: Email;
}

/** Latin-1 carries the bytes. */
async function sent(t: ExecutionContext, lines: string[]): Promise<Sent> {
  const to = `repair${count++}@there.invalid`;
  const talk = await loggedIn(await tenant());
  await talk.begins('<>', `<${to}>`);
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

const withFrom = (line: string) => (line === 'FROM' ? from : line);

const headers = table<[name: string, lines: string[], field: string, values: string[]]>(
  'submission/repaired-headers',
);

for (const [name, given, field, values] of headers) {
  test(`header: ${name}`, async (t) => {
    const { raw } = await sent(t, [...given.map(withFrom), '', 'Hi']);
    const found = fieldsOf(raw, field);
    t.is(found.length, values.length, String(found));
    for (const [index, value] of values.entries()) {
      if (value.startsWith('^')) t.regex(found[index]!, new RegExp(value));
      else t.is(found[index], value);
    }
  });
}

const subjects: Record<string, [bytes: string, text: string]> = {
  'windows-1252': ['Price: 5 \x80 \x96 \x93now\x94', 'Price: 5 € – “now”'],
  'Latin-1': ['Gr\xfc\xdfe', 'Grüße'],
  'UTF-8': [Buffer.from('Grüße €').toString('latin1'), 'Grüße €'],
};

for (const [name, [bytes, text]] of Object.entries(subjects)) {
  test(`undeclared ${name} in the header and, if it is certain, the body`, async (t) => {
    const { email } = await sent(t, [from, `Subject: ${bytes}`, 'MIME-Version: 1.0', '', bytes]);
    t.is(email.subject, text);
    // It could be in any of the charsets of ISO 8859.
    if (name === 'Latin-1') return;
    t.is(email.text?.trim(), text);
    const typed = await sent(t, [
      from,
      'MIME-Version: 1.0',
      'Content-Type: text/html',
      '',
      `<p>${bytes}</p>`,
    ]);
    t.is(typed.email.html?.trim(), `<p>${text}</p>`);
    const inParts = await sent(t, [
      ...[from, 'MIME-Version: 1.0', 'Content-Type: multipart/alternative; boundary=b', '', '--b', ''],
      ...[bytes, '--b', 'Content-Type: text/html; charset=us-ascii', '', `<p>${bytes}</p>`, '--b--'],
    ]);
    t.is(inParts.email.text?.trim(), text);
    t.is(inParts.email.html?.trim(), `<p>${text}</p>`);
  });
}

test('ISO-8859-1 with bytes that only windows-1252 has', async (t) => {
  const { email } = await sent(t, [from, 'Content-Type: text/plain; charset=iso-8859-1', '', '5 \x80']);
  t.is(email.text?.trim(), '5 €');
});

test('text that says UTF-8 and can only be windows-1252, in any transfer encoding', async (t) => {
  for (const [encoding, bytes] of [
    ['8bit', 'Gr\xfc\xdfe'],
    ['quoted-printable', 'Gr=FC=DFe'],
  ] as const) {
    const labels = ['Content-Type: text/plain; charset=utf-8', `Content-Transfer-Encoding: ${encoding}`];
    t.is((await sent(t, [from, ...labels, '', bytes])).email.text?.trim(), 'Grüße', encoding);
  }
  const cut = ['Content-Type: text/plain; charset=utf-8', '', 'Gr\xc3\xbc\xc3\x9fe \xc3'];
  t.is((await sent(t, [from, ...cut])).email.text?.trim(), 'Grüße \ufffd');
});

test('an empty Subject beside another says nothing', async (t) => {
  for (const subjects of [
    ['Subject: ', 'Subject: Order'],
    ['Subject: Order', 'Subject:'],
  ]) {
    const { raw } = await sent(t, [from, ...subjects, '', 'Hello']);
    t.deepEqual(fieldsOf(raw, 'Subject'), ['Order']);
  }
  t.deepEqual(fieldsOf((await sent(t, [from, 'Subject: ', '', 'Hello'])).raw, 'Subject'), ['']);
});

test('HTML that names UTF-8 only in its head is labeled so, and HTML that names another charset is not', async (t) => {
  const labelOf = async (meta: string) => {
    const html = `<html><head>${meta}</head><p>Gr\xc3\xbc\xc3\x9fe</p></html>`;
    const { raw } = await sent(t, [from, 'MIME-Version: 1.0', 'Content-Type: text/html', '', html]);
    return fieldsOf(raw, 'Content-Type');
  };
  for (const meta of ['<meta charset="utf-8">', "<meta charset = 'UTF8'>", '<meta charset=utf-8>', ''])
    t.deepEqual(await labelOf(meta), ['text/html; charset=utf-8'], meta);
  t.deepEqual(await labelOf('<meta charset="windows-1252">'), ['text/html']);
});

const labels = table<[labels: string[], bytes: string, text: string]>('submission/odd-labels');

for (const [given, bytes, text] of labels) {
  test(`labels in an odd spelling: ${given.join(', ')}`, async (t) => {
    const { email, raw } = await sent(t, [from, ...given, '', bytes]);
    t.is(email.text?.trim(), text);
    t.regex(
      fieldsOf(raw, 'Content-Transfer-Encoding').join(),
      /^(?:7bit|quoted-printable|base64|x-uuencode)?$/i,
    );
  });
}

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

const refused = table<[name: string, lines: string[], reason: RegExp]>('submission/unrepaired');

for (const [name, lines, reason] of refused) {
  test(`stays refused: ${name}`, async (t) => {
    t.regex(
      await submit(await loggedIn(await tenant()), ['no@there.invalid'], lines.map(withFrom), '554 5.6.0'),
      reason,
    );
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
