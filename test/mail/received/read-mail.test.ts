/** What is read of a received mail: its parts, the mails that it answers, whether a program sent it; whatever a stranger writes. */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
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

test('a text that is blank beside HTML is that of the HTML', (t) => {
  const alternatives = (text: string) =>
    mail(
      'Content-Type: multipart/alternative; boundary=a',
      '',
      ...parts('a', ['Content-Type: text/plain', '', text], ['Content-Type: text/html', '', '<p>Hello</p>']),
      '',
    );
  t.is(readContent(alternatives(' \r\n'))!.text.trim(), 'Hello');
  t.is(readMail(alternatives('')).summary.preview, 'Hello');
  t.is(readContent(alternatives('Hi'))!.text, 'Hi');
});

test('HTML whose part names no charset is read in the one that it names itself', (t) => {
  const html = (meta: string, bytes: string) =>
    readContent(Buffer.from(`Content-Type: text/html\r\n\r\n<html>${meta}<p>${bytes}</p>`, 'latin1'))!.html!;
  t.true(html('<meta charset="iso-8859-2">', '\xb1').includes('ą'));
  t.true(html('<META content="text/html; charset=gb2312">', '\xb9\xfe').includes('哈'));
  t.true(html('<meta charset=utf-8>', '\xe9').includes('é'));
  t.true(html('', '\x80').includes('€'));
});

const parts = (boundary: string, ...bodies: string[][]) => [
  ...bodies.flatMap((lines) => [`--${boundary}`, ...lines]),
  `--${boundary}--`,
];

const mixed = (...bodies: string[][]) =>
  mail('Content-Type: multipart/mixed; boundary=m', '', ...parts('m', ...bodies), '');

const plain = (text: string) => ['Content-Type: text/plain', '', text];

const files = (raw: Buffer) => readContent(raw)!.attachments.map(({ filename, type }) => [filename, type]);

test('text between files and after HTML is text, and a text that is a file is none', (t) => {
  const picture = ['Content-Type: image/png; name=a.png', 'Content-Disposition: inline', '', 'AAAA'];
  const ofApple = mixed(plain('Look:'), picture, plain('Do you see it?'));
  t.is(readContent(ofApple)!.text, 'Look:\nDo you see it?');
  t.deepEqual(files(ofApple), [['a.png', 'image/png']]);

  const html = ['Content-Type: text/html', '', '<p>Hello</p>'];
  const ofList = readContent(mixed(html, plain('To leave the list')))!;
  t.is(ofList.text.replace(/\s+/g, ' '), 'Hello To leave the list');
  t.is(ofList.html, '<p>Hello</p>');

  const log = ['Content-Type: text/plain; name=log.txt', 'Content-Disposition: inline', '', 'LOG'];
  const page = ['Content-Type: text/html; name=a.html', 'Content-Disposition: inline', '', '<p>A</p>'];
  t.is(readContent(mixed(html, log, page))!.text.trim(), 'Hello');
  t.is(readContent(mixed(html, log, page))!.html, '<p>Hello</p>');
  t.deepEqual(files(mixed(html, log, page)), [
    ['log.txt', 'text/plain'],
    ['a.html', 'text/html'],
  ]);
  t.is(readContent(mail('Content-Type: text/plain; name=body.txt', '', 'Named'))!.text, 'Named');
});

test('HTML of a signed mail is its HTML', (t) => {
  const signature = ['Content-Type: application/pkcs7-signature; name=smime.p7s', '', 'AAAA'];
  const body = parts('s', ['Content-Type: text/html', '', '<p>Signed</p>'], signature);
  const raw = mail('Content-Type: multipart/signed; boundary=s', '', ...body, '');
  t.is(readContent(raw)!.html, '<p>Signed</p>');
  t.deepEqual(files(raw), [['smime.p7s', 'application/pkcs7-signature']]);
});

test('an invitation is a file, once', (t) => {
  const invitation = ['Content-Type: text/calendar; method=REQUEST', '', 'BEGIN:VCALENDAR'];
  const alternatives = [
    'Content-Type: multipart/alternative; boundary=a',
    '',
    ...parts('a', plain('Come'), invitation),
  ];
  const file = ['Content-Type: application/ics; name=invite.ics', '', 'BEGIN:VCALENDAR'];
  t.deepEqual(files(mail(...alternatives, '')), [[null, 'text/calendar']]);
  t.deepEqual(files(mail(...invitation, '')), [[null, 'text/calendar']]);
  t.deepEqual(files(mixed(alternatives, file)), [['invite.ics', 'application/ics']]);
});

test('a text is read in its charset, whatever its label says of it', (t) => {
  const text = (type: string, bytes: string) =>
    readContent(Buffer.concat([mail(`Content-Type: ${type}`, '', ''), Buffer.from(bytes, 'latin1')]))!.text;
  const japanese = '\x1b$BF|K\\8l\x1b(B';
  t.is(text('text/plain; charset=iso-2022-jp', japanese), '日本語', 'ASCII bytes are not its letters');
  t.is(text('text/plain', japanese), '日本語');
  t.is(text('text/plain; charset=iso-2022-jp', Buffer.from('日本').toString('latin1')), '日本');
  const korean = '\x1b$)CHi\r\n\x0eGQ1[\x0f, \x0eGQ\r\n1[';
  t.is(text('text/plain; charset=iso-2022-kr', korean), 'Hi\r\n한글, 한\r\n글');
  t.is(text('text/plain; charset=utf-16le', 'H\0i\0'), 'Hi');
  for (const label of ['', '; charset=unknown-8bit', '; charset=x-none', '; charset=us-ascii'])
    t.is(text(`text/plain${label}`, 'caf\xe9'), 'café', label);
});

test('millions of shifts of a Korean text take little memory', async (t) => {
  const url = JSON.stringify(import.meta.resolve('#mail/received/read-mail.ts'));
  const code = `const { parentPort, workerData } = require('node:worker_threads');
    import(${url}).then(({ readContent }) => parentPort.postMessage(readContent(Buffer.from(workerData)).text));`;
  const workerData = mail('', `\x1b$)C${'\x0e'.repeat(6_000_000)}GQ\x0f`);
  const worker = new Worker(code, { eval: true, workerData, resourceLimits: { maxOldGenerationSizeMb: 64 } });
  const [text] = await once(worker, 'message');
  t.is(text, '한');
});

test('a text whose label can only be wrong is read as what it is', (t) => {
  const text = (charset: string, bytes: string) =>
    readContent(
      Buffer.concat([
        mail(`Content-Type: text/plain; charset=${charset}`, '', ''),
        Buffer.from(bytes, 'latin1'),
      ]),
    )!.text;
  const japanese = '\x1b$BF|K\\8l\x1b(B';
  for (const charset of ['us-ascii', 'utf-8', 'iso-8859-1', 'windows-1252'])
    t.is(text(charset, japanese), '日本語', charset);
  t.is(text('utf-8', 'caf\xe9'), 'café');
  t.is(text('utf-8', 'caf\xe9 \xc3\xa9'), 'caf\ufffd é', 'UTF-8 with a byte that is not');
  t.is(text('gb18030', '\xb9\xfe'), '哈');
});

test('a header that is not encoded is read in the first charset that the mail names', (t) => {
  const name = Buffer.from('b9feb9fe', 'hex').toString('latin1');
  const lines = [
    `Subject: ${name}`,
    'Content-Type: multipart/mixed; boundary=m',
    '',
    ...parts(
      'm',
      ['Content-Type: text/plain; charset="gb18030"', '', name],
      [`Content-Type: image/png; name="${name}.png"`, 'Content-Disposition: attachment', '', 'AAAA'],
    ),
    '',
  ];
  const raw = Buffer.from(lines.join('\r\n'), 'latin1');
  t.is(readMail(raw).subject, '哈哈');
  t.deepEqual(files(raw), [['哈哈.png', 'image/png']]);
});

test('a file name without a charset is UTF-8, and of two, the extended one counts', (t) => {
  const named = (parameters: string) =>
    files(
      mixed(['Content-Type: image/png', `Content-Disposition: attachment; ${parameters}`, '', 'AAAA']),
    )[0]![0];
  t.is(named("filename*=''%e2%82%ac.png"), '€.png');
  t.is(named("filename*0*=''%e2%82%ac; filename*1=.png"), '€.png');
  t.is(named("filename*=iso-8859-1''%e9.png"), 'é.png');
  t.is(named('filename*=%e2%82%ac.png'), '€.png');
  t.is(named("filename*0*=utf-8''a; filename*1*='b.png"), "a'b.png");
  t.is(named(`filename="??;.png"; filename*=utf-8''%e2%82%ac.png`), '€.png');
  t.is(named("filename*=utf-8''%e2%82%ac.png;filename=EUR.png"), '€.png');
  t.is(named(`filename="\\"?.png"; filename*0*=utf-8''%e2%82%ac; filename*1=.png; size=1`), '€.png');
});

test('a Content-ID without brackets, and a disposition that is encoded', (t) => {
  const picture = (id: string) => [
    'Content-Type: image/png',
    'Content-Disposition: =?utf-8?Q?inline?=',
    `Content-ID: ${id}`,
    '',
    'AAAA',
  ];
  t.like(readContent(mixed(picture('logo@x.invalid'), picture('<>')))!.attachments, [
    { contentId: 'logo@x.invalid', isInline: true },
    { contentId: null, isInline: true },
  ]);
});

test('mail that a program sent is told by what it says of itself', (t) => {
  const isAutomatic = (field: string) => readMail(mail(field, '', 'x')).summary.isAutomatic;
  for (const field of ['Auto-Submitted: auto-replied', 'Precedence: bulk', 'List-Id: <a.b>'])
    t.true(isAutomatic(field), field);
  const ofPeople = ['Auto-Submitted: no', 'Precedence: first-class', 'Subject: auto-'];
  for (const field of [...ofPeople, 'X-Auto-Response-Suppress: DR, OOF, AutoReply'])
    t.false(isAutomatic(field), field);
});

test('From names one domain, or DMARC has nothing to ask', (t) => {
  const domains = (...fields: string[]) => readMail(mail(...fields, '', 'x')).fromDomains;
  t.deepEqual(domains('From: a@X.invalid, b@x.invalid'), ['x.invalid']);
  t.deepEqual(domains('From: a@x.invalid, a@y.invalid'), ['x.invalid', 'y.invalid']);
  t.is(domains('From: a@x.invalid', 'From: b@x.invalid'), null);
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
  const { text, headers } = readContent(raw)!;
  t.deepEqual([text, headers[0]], ['x\ufffdy', { name: 'Subject', value: 'a\ufffdb' }]);
  const word = `=?utf-8?b?${Buffer.from('\u{1f600}').toString('base64')}?=`;
  const cut = readMail(mail(`Subject: ${'a'.repeat(997)}${word}`, '', `${'a'.repeat(199)}\u{1f600}`));
  t.is(cut.subject, `${'a'.repeat(997)}\ufffd`);
  t.is(cut.summary.preview, `${'a'.repeat(199)}\ufffd`);
});

test('a multipart without a boundary, or without parts, is read as text', (t) => {
  for (const parameter of ['', '; boundary=', '; boundary=other'])
    t.like(readContent(mail(`Content-Type: multipart/mixed${parameter}`, '', 'Hello')), {
      text: 'Hello',
      reply: 'Hello',
      attachments: [],
    });
});
