/** Whole messages as ASCII: what a reader sees stays, and no byte changes without need. */
import { isAscii } from 'node:buffer';
import test from 'ava';
import PostalMime, { decodeWords } from 'postal-mime';
import { table } from '#lab/table.ts';
import { attachedParts } from '#mail/compose/attachment.ts';
import { toSevenBit } from '#mail/compose/seven-bit.ts';

const made = (lines: string[], charset: 'utf8' | 'latin1' = 'utf8') =>
  toSevenBit(Buffer.from(`${lines.join('\r\n')}\r\n`, charset)).toString('latin1');

const multipart = (type: string, ...parts: string[][]) => [
  'From: a@b.invalid',
  'MIME-Version: 1.0',
  `Content-Type: ${type}; boundary="=_b"`,
  ...['Content-Transfer-Encoding: 8bit', '', 'Präambel', ''],
  ...parts.flatMap((part) => ['--=_b', ...part]),
  '--=_b--',
];
const text = ['Content-Type: text/plain; charset=utf-8', 'Content-Transfer-Encoding: 8bit', '', 'Grüße '];

test('ASCII without a label of more stays to the byte', (t) => {
  const raw = Buffer.from('From:a@b.invalid\r\nContent-Transfer-Encoding: 7bit\r\n\r\nHello \r\n');
  t.is(toSevenBit(raw), raw);
});

test('an encoding of 8bit is renamed, also where the text is ASCII, because Postfix encodes by it', (t) => {
  const lines = ['From: a@b.invalid', 'Content-Transfer-Encoding:', ' 8bit', 'X-After: 1', '', 'Hello'];
  t.is(made(lines), 'From: a@b.invalid\r\nX-After: 1\r\nContent-Transfer-Encoding: 7bit\r\n\r\nHello\r\n');
});

test('bodies become quoted-printable or base64, by what they hold', async (t) => {
  const cyrillic = ['Content-Type: text/html; charset=utf-8', '', 'Здравствуйте'];
  const file = [
    'Content-Type: application/x-a; name="Grüße.a"',
    'Content-Transfer-Encoding: binary',
    '',
    'ü',
  ];
  const out = made(multipart('multipart/mixed', text, cyrillic, file));
  t.true(isAscii(Buffer.from(out, 'latin1')));
  t.deepEqual(out.match(/^Content-Transfer-Encoding: .*/gm), [
    'Content-Transfer-Encoding: 7bit',
    'Content-Transfer-Encoding: quoted-printable',
    'Content-Transfer-Encoding: base64',
    'Content-Transfer-Encoding: base64',
  ]);
  const seen = await PostalMime.parse(out);
  t.true(seen.text!.startsWith('Grüße'));
  t.true(seen.html!.endsWith('Здравствуйте'));
  t.is(seen.attachments[0]!.filename, 'Grüße.a');
  t.is(Buffer.from(seen.attachments[0]!.content as ArrayBuffer).toString(), 'ü');
});

test('a body without any MIME field is named UTF-8 if it is', (t) => {
  t.regex(
    made(['From: a@b.invalid', '', 'Grüße']),
    /\r\nContent-Type: text\/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nGr=C3=BC=C3=9Fe\r\n$/,
  );
  t.notRegex(made(['From: a@b.invalid', '', 'Grüße'], 'latin1'), /Content-Type/);
});

test('text in fields becomes encoded words; addresses keep theirs', async (t) => {
  const fields = [
    'From: Jörg (x) <a@sender.invalid>',
    'To: "Ann, Ä." <ann@grüße.invalid>, =?utf-8?Q?B=C3=B6b?= ü <bob@there.invalid>',
    'Subject: Grüße',
    ' und =?utf-8?Q?=C3=A4hnliches?=',
    'X-Note: Größe',
  ];
  const out = made([...fields, '', 'Hello']);
  t.true(isAscii(Buffer.from(out, 'latin1')));
  const seen = await PostalMime.parse(out);
  t.deepEqual(seen.from, { name: 'Jörg (x)', address: 'a@sender.invalid' });
  t.deepEqual(seen.to, [
    { name: 'Ann, Ä.', address: 'ann@xn--gre-6ka8l.invalid' },
    { name: 'Böb ü', address: 'bob@there.invalid' },
  ]);
  t.is(seen.subject, 'Grüße und ähnliches');
  t.is(decodeWords(seen.headers.find(({ key }) => key === 'x-note')!.value), 'Größe');
});

test('Latin-1 text is read as such', async (t) => {
  const out = made(['From: a@b.invalid', 'Subject: Grüße', '', 'Hello'], 'latin1');
  t.is((await PostalMime.parse(out)).subject, 'Grüße');
});

test('what is signed stays as it is, because a change would break it; its own header does not', (t) => {
  const lines = multipart('multipart/signed', text, ['Content-Type: application/pgp-signature', '', 'x']);
  t.is(Buffer.from(made(lines), 'latin1').toString(), `${lines.join('\r\n')}\r\n`);
  t.regex(made(['Subject: Grüße', ...lines]), /^Subject: =\?UTF-8\?Q\?Gr=C3=BC=C3=9Fe\?=\r\nFrom/);
});

/** The field, and its line in the message. `inside` if it is in a part, to which nothing is delivered. */
const fields = table<[given: string, written: string, inside?: string]>('compose/ascii-fields');

test('each kind of field becomes ASCII in the way that its readers decode', (t) => {
  const fieldOf = (message: string) =>
    message.split('\r\nMIME-Version: 1.0\r\n')[0]!.replace(/\r\n(?=[ \t])/g, '');
  for (const [given, written, inside = written] of fields) {
    for (const charset of ['utf8', 'latin1'] as const) {
      const lines = [given, 'MIME-Version: 1.0', '', 'Hi'];
      t.is(
        fieldOf(Buffer.from(made(lines, charset), 'latin1').toString()),
        written || 'MIME-Version: 1.0\r\n\r\nHi\r\n',
        given,
      );
      const attached = made(['Content-Type: message/rfc822', '', ...lines], charset);
      const start = attached.indexOf('\r\n\r\n') + 4;
      t.is(fieldOf(attached.slice(start)), inside || 'MIME-Version: 1.0\r\n\r\nHi\r\n', given);
    }
  }
});

const inner = ['From: Jörg <a@b.invalid>', 'Subject: Grüße', ...text.slice(0, 3), 'Grüße'];

test('a message inside a message is made ASCII part by part', (t) => {
  const out = made(multipart('multipart/mixed', ['Content-Type: message/rfc822', '', ...inner]));
  t.true(isAscii(Buffer.from(out, 'latin1')));
  t.regex(out, /\r\nSubject: =\?utf-8\?Q\?Gr=C3=BC=C3=9Fe\?=\r\n/i);
  t.regex(out, /\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nGr=C3=BC=C3=9Fe\r\n/);
});

test('messages inside messages end somewhere', (t) => {
  const nested = 'Content-Type: message/rfc822\r\n\r\n'.repeat(20_000);
  const out = toSevenBit(Buffer.from(`${nested}ü\r\n`));
  t.true(isAscii(out));
  t.is(out.toString().match(/message\/rfc822/g)!.length, 5);
});

test('an attached message that cannot be ASCII is a file', (t) => {
  const file = (content: string) => ({
    filename: 'm.eml',
    contentType: 'message/rfc822',
    content: Buffer.from(content),
  });
  const fieldsOf = (content: string) =>
    attachedParts([file(content)], false).files[0]!.fields.map(({ text }) => text.replaceAll('\r\n', ''));
  t.deepEqual(fieldsOf(inner.join('\n')).slice(0, 2), [
    'Content-Type: message/rfc822; name=m.eml',
    'Content-Transfer-Encoding: 7bit',
  ]);
  for (const content of ['From: jörg@b.invalid\n\nHi', 'Subject: x\n\n\0', `a: b\n\n${'y'.repeat(999)}`]) {
    t.deepEqual(fieldsOf(content).slice(0, 2), [
      'Content-Type: application/octet-stream; name=m.eml',
      'Content-Transfer-Encoding: base64',
    ]);
  }
});
