/** What is read of a received mail: its parts, the mails that it answers, whether a program sent it; whatever a stranger writes. */
import test from 'ava';
import { readContent, readFile, readMail } from '#mail/received/read-mail.ts';

const mail = (...lines: string[]) => Buffer.from(lines.join('\r\n'));

const reply = mail(
  'From: =?utf-8?q?Ann_M=C3=BCller?= <ann@There.invalid>',
  'To: orders@x.invalid',
  'Subject: =?utf-8?b?UsOpcG9uc2U=?=',
  'Message-ID: <answer@there.invalid>',
  'In-Reply-To: <first@x.invalid>',
  'References: <root@x.invalid> <first@x.invalid>',
  'MIME-Version: 1.0',
  'Content-Type: multipart/mixed; boundary=outer',
  '',
  '--outer',
  'Content-Type: multipart/alternative; boundary=inner',
  '',
  '--inner',
  'Content-Type: text/plain; charset=iso-8859-1',
  'Content-Transfer-Encoding: quoted-printable',
  '',
  'D=E9j=E0 vu.',
  '',
  'On Sat, 28 Nov 2026 at 10:00, Shop <orders@x.invalid> wrote:',
  '> Your order',
  '--inner',
  'Content-Type: text/html; charset=utf-8',
  '',
  '<p>Déjà vu.</p>',
  '--inner--',
  '--outer',
  'Content-Type: application/pdf; name="=?utf-8?q?R=C3=A9cu.pdf?="',
  'Content-Disposition: attachment',
  'Content-ID: <file@there.invalid>',
  'Content-Transfer-Encoding: base64',
  '',
  Buffer.from('%PDF').toString('base64'),
  '--outer--',
  '',
);

test('a reply with a file: its text, the reply alone, what it answers, its file', (t) => {
  const read = readMail(reply);
  t.like(read, {
    messageId: 'answer@there.invalid',
    subject: 'Réponse',
    fromHeader: 'Ann Müller <ann@There.invalid>',
    answered: ['first@x.invalid', 'root@x.invalid'],
    fromDomains: ['there.invalid'],
  });
  t.like(read.summary, { isReadable: true, isAutomatic: false });
  const file = {
    position: 0,
    filename: 'Récu.pdf',
    type: 'application/pdf',
    size: 4,
    contentId: 'file@there.invalid',
    isInline: false,
  };
  t.deepEqual(read.summary.attachments, [file]);
  const content = readContent(reply)!;
  t.like(content, { html: '<p>Déjà vu.</p>', reply: 'Déjà vu.', attachments: [file] });
  t.true(content.text.startsWith('Déjà vu.\r\n\r\nOn Sat'));
  t.deepEqual(content.headers[0], { name: 'From', value: 'Ann Müller <ann@There.invalid>' });
  t.is(readFile(reply, 0)?.toString(), '%PDF');
  t.is(readFile(reply, 1), null);
});

test('mail that has only HTML has a text, too', (t) => {
  const raw = mail('Content-Type: text/html', '', '<h1>Hello</h1><p>World</p>');
  t.is(readContent(raw)!.text.replace(/\s+/g, ' ').trim(), 'Hello World');
});

test('mail that a program sent is told by what it says of itself', (t) => {
  const isAutomatic = (field: string) => readMail(mail(field, '', 'x')).summary.isAutomatic;
  for (const field of [
    'Auto-Submitted: auto-replied',
    'Precedence: bulk',
    'List-Id: <a.b>',
    'X-Auto-Response-Suppress: All',
  ])
    t.true(isAutomatic(field), field);
  for (const field of ['Auto-Submitted: no', 'Precedence: first-class', 'Subject: auto-'])
    t.false(isAutomatic(field), field);
});

test('From names one domain, or DMARC has nothing to ask', (t) => {
  const domains = (...fields: string[]) => readMail(mail(...fields, '', 'x')).fromDomains;
  t.deepEqual(domains('From: a@X.invalid, b@x.invalid'), ['x.invalid']);
  t.deepEqual(domains('From: a@x.invalid', 'From: a@y.invalid'), ['x.invalid', 'y.invalid']);
  t.deepEqual(domains('From: a@bücher.invalid'), ['xn--bcher-kva.invalid']);
  t.deepEqual(domains('Subject: x'), []);
  for (const odd of [
    'nobody',
    '<a@x.invalid',
    '"a@x.invalid',
    'a@x.invalid (',
    `${'a@x.invalid,'.repeat(9000)}`,
  ])
    t.is(domains(`From: ${odd}`), null, odd.slice(0, 40));
});

test('a mail that cannot be parsed has its header fields all the same', (t) => {
  const parts = Array.from({ length: 2000 }, () => '--b\r\n\r\nx').join('\r\n');
  const raw = mail('Subject: many parts', 'Content-Type: multipart/mixed; boundary=b', '', parts);
  t.like(readMail(raw), { subject: 'many parts', summary: { isReadable: false } });
  t.is(readContent(raw), null);
});

test('signatures that would take long to check are not checked', (t) => {
  const signature = (tags = '') => `DKIM-Signature: v=1; d=x.invalid; s=one; h=from; ${tags}b=x`;
  const of = (...fields: string[]) => readMail(mail('From: a@x.invalid', ...fields, '', 'x')).signatures;
  t.deepEqual(of(signature()), { isSigned: true, isBounded: true, keyNames: ['one._domainkey.x.invalid'] });
  t.deepEqual(of(), { isSigned: false, isBounded: false, keyNames: [] });
  t.false(of(...Array(11).fill(signature())).isBounded, 'many');
  t.false(of(...[1, 2, 3, 4].map((l) => signature(`l=${l}; `))).isBounded, 'many forms of the body');
  t.false(of(signature(), `X: ${'a\r\n '.repeat(2000)}a`).isBounded, 'a field of many lines');
  t.false(readMail(mail(signature(), '', 'x'.repeat(600_000))).signatures.isBounded, 'a long line');
  t.true(readMail(mail(signature(), '', ...Array(9000).fill('x'.repeat(900)))).signatures.isBounded);
});

test('text that no database stores is replaced', (t) => {
  const raw = mail('Subject: a\0b', 'Message-ID: <a\0@b>', '', 'x\0y');
  t.like(readMail(raw), { subject: 'a\ufffdb', messageId: 'a\ufffd@b', summary: { preview: 'x\ufffdy' } });
});

test('a multipart without a boundary, or without parts, is read as text', (t) => {
  for (const parameter of ['', '; boundary=', '; boundary=other'])
    t.like(readContent(mail(`Content-Type: multipart/mixed${parameter}`, '', 'Hello')), {
      text: 'Hello',
      reply: 'Hello',
      attachments: [],
    });
});
