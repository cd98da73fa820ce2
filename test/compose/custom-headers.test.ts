import test from 'ava';
import PostalMime, { decodeWords } from 'postal-mime';
import { headerFault } from '../../src/compose/custom-headers.ts';
import { composeMime, toBytes } from '../../src/compose/mime.ts';
import { toFields } from '../lab/compose-cases.ts';
import { threadMs } from '../lab/thread-time.ts';

test('headers that would break or falsify the message are refused, and invalid values of those that replace ours', (t) => {
  const faulty: Record<string, string[]> = {
    x: ['From', 'to', 'SUBJECT', 'DKIM-Signature', 'Bcc', 'cc', 'Received', 'Return-Path', 'MIME-Version'],
    y: [
      'Content-Type',
      'content-anything',
      'Resent-To',
      'ARC-Seal',
      'Authentication-Results',
      'Sender',
      'Date',
    ],
    'a@b.invalid': ['X Y', 'X:Y', '', 'X-É', 'X\r\nY', 'X\0', 'X'.repeat(77)],
    'a\r\nBcc: e@x.invalid': ['X-A', 'Reply-To', 'Message-ID'],
    'a\nb': ['X-A'],
    'a\rb': ['X-A'],
    'a\0b': ['X-A'],
    'a\ud800b': ['X-A'],
    'a@b.invalid, c@d.invalid': ['Reply-To', 'Sender', 'Message-ID'],
    '<jörg@b.invalid>': ['Message-ID'],
    [`<${'a'.repeat(1000)}@b.invalid>`]: ['Message-ID'],
    'not a date': ['Date'],
  };
  for (const [value, names] of Object.entries(faulty)) {
    for (const name of names) t.truthy(headerFault(name, value), `${name}: ${value}`);
  }
  const fine = ['X-A', 'x_a', 'In-Reply-To', 'Reply-To', 'Sender', 'Message-ID', 'Toto', 'Auto-Submitted'];
  for (const name of fine) t.is(headerFault(name, 'a@b.invalid'), null, name);
});

const urlOf = (length: number) => `<https://a.invalid/${'u'.repeat(length)}>`;

/** Name, value, and the value in the message; null if the value is refused. */
const structured: [name: string, given: string, written: string | null][] = [
  ['List-Unsubscribe', '<https://a.invalid/?q==?utf-8?Q?a?=>', '<https://a.invalid/?q==?utf-8?Q?a?=>'],
  [
    'List-Unsubscribe',
    '<mailto:u@a.invalid>,<https://a.invalid/a,b>',
    '<mailto:u@a.invalid>, <https://a.invalid/a,b>',
  ],
  ['List-Unsubscribe', urlOf(860), urlOf(860)],
  ['List-Unsubscribe', urlOf(900), null],
  ['List-Unsubscribe', '<https://a.invalid/ä>', null],
  ['List-Unsubscribe', '<https://a.invalid/a b>', null],
  ['List-Unsubscribe', 'https://a.invalid/u', null],
  ['List-Unsubscribe', '<u@a.invalid>', null],
  ['List-Unsubscribe', '<https://>', null],
  ['List-Unsubscribe', '<mailto:u@a.invalid>,', null],
  ['list-unsubscribe', '', null],
  ['List-Unsubscribe-Post', 'list-unsubscribe=one-click', 'List-Unsubscribe=One-Click'],
  ['List-Unsubscribe-Post', 'One-Click', null],
  [
    'List-Help',
    '<mailto:h@a.invalid> (Instructions), (Web) <https://a.invalid/>',
    '<mailto:h@a.invalid> (Instructions), (Web) <https://a.invalid/>',
  ],
  ['List-Post', 'NO (closed)', 'NO (closed)'],
  ['List-Post', 'NEVER', null],
  ['List-Owner', 'NO', null],
  ['List-Id', 'Grüße <news.a.invalid>', '=?UTF-8?Q?Gr=C3=BC=C3=9Fe?= <news.a.invalid>'],
  ['List-Id', '"News, daily" <news.a.invalid>', '"News, daily" <news.a.invalid>'],
  ['List-Id', '<news.a.invalid>', '<news.a.invalid>'],
  ['List-Id', 'news.a.invalid', null],
  ['List-Id', '<nöws.a.invalid>', null],
  ['List-Software', 'Postern 1', 'Postern 1'],
  ['List-Software', 'Pförtner', null],
  ['References', '<a@b.invalid><c@d.invalid>  e@f.invalid', '<a@b.invalid> <c@d.invalid> <e@f.invalid>'],
  ['References', '<=?x?Q?y?=@b.invalid>', '<=?x?Q?y?=@b.invalid>'],
  ['References', '<ä@b.invalid>', null],
  ['References', `<${'a'.repeat(900)}@b.invalid>`, null],
  ['In-Reply-To', 'a@b.invalid', '<a@b.invalid>'],
  ['In-Reply-To', 'your mail of Monday', null],
  [
    'Disposition-Notification-To',
    '"Lee, Änn" <a@b.invalid>, c@d.invalid',
    '=?UTF-8?Q?Lee=2C_=C3=84nn?= <a@b.invalid>, c@d.invalid',
  ],
  ['Disposition-Notification-To', 'yes', null],
  ['Errors-To', 'ä@b.invalid', null],
];

test('structured headers are never encoded: they follow their grammar or are refused with what would be right', async (t) => {
  for (const [name, given, written] of structured) {
    const fault = headerFault(name, given);
    t.is(fault === null, written !== null, `${name}: ${given.slice(0, 80)}`);
    if (fault) t.is(fault.message, `the value of ${name} must be ${fault.expected}`);
    const message = toBytes(composeMime(toFields({ text: 'x', headers: { [name]: given } })).message);
    const { headers } = await PostalMime.parse(message);
    const value = headers.find(({ key }) => key === name.toLowerCase())?.value ?? null;
    t.is(value, written, `${name}: ${given.slice(0, 80)}`);
  }
});

test('the grammars are checked in linear time', (t) => {
  const parts = [
    '<',
    '>',
    '(',
    ')',
    '()',
    ' ',
    '\t ',
    ',',
    '"',
    '"\\',
    '\\',
    '<a:',
    '<a:b>',
    '<a:b> ',
    '<a@b> ',
    'a@b ',
    'a.',
  ];
  const began = threadMs();
  for (const name of [
    'List-Unsubscribe',
    'List-Post',
    'List-Id',
    'References',
    'Errors-To',
    'List-X',
    'Reply-To',
  ]) {
    for (const part of parts) headerFault(name, part.repeat(16_384 / part.length));
  }
  t.true(threadMs() - began < 5000);
});

test('text that looks like an encoded word reaches the reader as it was given', async (t) => {
  const text = 'see =?utf-8?Q?Bcc?= and =?x';
  const fields = toFields({ text: 'x', subject: text, headers: { 'X-A': text } });
  const from = { name: text, address: 'a@b.invalid', domain: 'b.invalid' };
  const attachments = [{ filename: `${text}.txt`, content: Buffer.from('x') }];
  const message = toBytes(composeMime({ ...fields, from, attachments }).message);
  const read = await PostalMime.parse(message);
  t.is(read.subject, text);
  t.is(read.from?.name, text);
  t.is(decodeWords(read.headers.find(({ key }) => key === 'x-a')!.value), text);
  // Some readers, this one too, decode the encoded words in a name that RFC 2231 carries.
  t.true(message.includes("filename*0*=utf-8''see%20%3D%3Futf-8%3FQ%3FBcc%3F%3D"));
  t.notRegex(message.toString(), /=\?utf-8\?Q\?Bcc/);
});
