/**
 * What Mailgun's SDKs in other languages put on the wire, replayed octet by octet, and what no client sends. Python's calls were
 * recorded from the library that its SDK uses; the others are written as the sources of the SDK and its HTTP library do.
 */
import test from 'ava';
import PostalMime from 'postal-mime';
import { verifyDkim } from '../lab/dkim.ts';
import { startWorld, type World } from '../lab/scenes/world.ts';
import { until } from '../lab/until.ts';

/** A part of a form: the lines of its head, and its content. */
type Part = [head: string, content: string];

interface Recorded {
  client: string;
  path?: 'messages.mime';
  type: string;
  body: Part[] | string;
  expected: { to: string[]; tags?: object; files?: string[]; subject?: string };
}

const from = 'App <app@sender.invalid>';
const named = (name: string, more = '') => `Content-Disposition: form-data; name="${name}"${more}`;
const mime = [
  'From: App <app@sender.invalid>',
  'To: ann@there.invalid',
  'Subject: Hello',
  'Date: Tue, 24 Nov 2026 10:00:00 +0000',
  'MIME-Version: 1.0',
  'X-Mailgun-Tag: password-reset',
  'X-Mailgun-Variables: {"color":"blue","client-id":"12345"}',
  '',
  'Hi.',
  '',
].join('\r\n');

/** php-http/multipart-stream-builder. */
const php = (name: string, content: string, file?: string): Part => [
  [named(name, file && `; filename="${file}"`), `Content-Length: ${content.length}`]
    .concat(file ? [`Content-Type: text/plain`] : [])
    .join('\r\n'),
  content,
];
/** faraday-multipart and multipart-post. Every member of a list has brackets. */
const rubyFile = (name: string, file: string, content: string): Part => [
  [
    named(name, `; filename="${file}"`),
    `Content-Length: ${content.length}`,
    'Content-Type: application/pdf',
    'Content-Transfer-Encoding: binary',
  ].join('\r\n'),
  content,
];
/** Symfony's FormDataPart. */
const symfony = (name: string, content: string): Part => [
  ['Content-Type: text/plain; charset=utf-8', 'Content-Transfer-Encoding: 8bit', named(name)].join('\r\n'),
  content,
];

const recorded: Recorded[] = [
  {
    client: 'PHP, messages()->send',
    type: 'multipart/form-data; boundary="67444f5e3a1b97.40121693"',
    body: [
      php('from', from),
      php('to', 'ann@there.invalid'),
      php('to', 'Bob Bee <bob@there.invalid>'),
      php('subject', 'Hello'),
      php('text', 'Hi'),
      php('o:tag', 'one'),
      php('o:tag', 'two'),
      php('v:order', '4711'),
      php('attachment', 'a text', 'a.txt'),
    ],
    expected: { to: ['ann', 'bob'], tags: { order: '4711', tag: 'one,two' }, files: ['a.txt text/plain'] },
  },
  {
    client: 'PHP, messages()->sendMime',
    path: 'messages.mime',
    type: 'multipart/form-data; boundary="67444f5e3a1b97.40121694"',
    body: [php('o:tag', 'php'), php('to', 'ann@there.invalid'), php('message', mime, 'message')],
    expected: { to: ['ann'], tags: { color: 'blue', 'client-id': '12345', tag: 'password-reset,php' } },
  },
  {
    client: 'Ruby, send_message without a file',
    type: 'application/x-www-form-urlencoded',
    body: 'from=App+%3Capp%40sender.invalid%3E&o%3Atag=one&o%3Atag=two&subject=Hello&text=Hi&to=ann%40there.invalid&to=bob%40there.invalid',
    expected: { to: ['ann', 'bob'], tags: { tag: 'one,two' } },
  },
  {
    client: 'Ruby, MessageBuilder with a file',
    type: 'multipart/form-data; boundary=-----------RubyMultipartPost-0f1c9a3bb5d04c6f8e27',
    body: [
      [named('from[]'), from],
      [named('to[]'), "'Ann Bee' <ann@there.invalid>"],
      [named('to[]'), 'bob@there.invalid'],
      [named('subject[]'), 'Hello'],
      [named('text[]'), 'Hi'],
      [named('o:tag[]'), 'one'],
      [named('h:reply-to'), 'help@sender.invalid'],
      rubyFile('attachment[]', 'receipt.pdf', '%PDF-'),
    ],
    expected: { to: ['ann', 'bob'], tags: { tag: 'one' }, files: ['receipt.pdf application/pdf'] },
  },
  {
    client: 'Python, messages.create',
    type: 'application/x-www-form-urlencoded',
    body: 'from=App+%3Capp%40sender.invalid%3E&to=ann%40there.invalid&to=bob%40there.invalid&cc=cleo%40there.invalid&subject=Hello&html=%3Cp%3EHi%3C%2Fp%3E&o%3Atag=September+newsletter&o%3Atag=newsletters&o%3Atracking=False',
    expected: { to: ['ann', 'bob', 'cleo'], tags: { tag: 'September newsletter,newsletters' } },
  },
  {
    client: 'Python, messages.create with files',
    type: 'multipart/form-data; boundary=f08bc6df6c10815f73f67a70b8b9ee40',
    body: [
      [named('from'), from],
      [named('to'), 'ann@there.invalid'],
      [named('subject'), 'Hello'],
      [named('html'), '<p>Hi</p>'],
      [named('o:tag'), 'Python test'],
      [named('attachment', '; filename="test1.txt"'), 'one'],
      [named('attachment', '; filename="receipt.pdf"'), '%PDF-'],
    ],
    expected: {
      to: ['ann'],
      tags: { tag: 'Python test' },
      files: ['receipt.pdf application/pdf', 'test1.txt text/plain'],
    },
  },
  {
    client: 'Python, mimemessage.create',
    path: 'messages.mime',
    type: 'multipart/form-data; boundary=e5f0249fd423b7a08f98a5afc9f6f242',
    body: [
      [named('from'), from],
      [named('to'), 'ann@there.invalid'],
      [named('cc'), 'cleo@there.invalid'],
      [named('subject'), 'Hello HELLO'],
      [named('message', '; filename="message"'), mime.replaceAll('\r\n', '\n')],
    ],
    expected: { to: ['ann'], tags: { color: 'blue', 'client-id': '12345', tag: 'password-reset' } },
  },
  {
    client: 'Go, Send of a NewMessage',
    type: 'multipart/form-data; boundary=c6f3a0ad6f0a4b1d9d5c7a2f8b3e4d1c0f9e8d7c6b5a49382716051423aa',
    body: [
      [named('from'), from],
      [named('subject'), 'Hello'],
      [named('text'), ''],
      [named('html'), '<p>Hi</p>'],
      [named('to'), 'ann@there.invalid'],
      [named('o:tag'), 'one'],
      [named('o:tracking'), 'no'],
      [named('o:tracking-clicks'), 'htmlonly'],
      [named('h:X-Mailgun-Variables'), '{"user":{"id":7}}'],
      [named('v:order'), '4711'],
      [`${named('attachment', '; filename="a.csv"')}\r\nContent-Type: application/octet-stream`, 'a,b'],
    ],
    expected: {
      to: ['ann'],
      tags: { user: '{"id":7}', order: '4711', tag: 'one' },
      files: ['a.csv text/csv'],
    },
  },
  {
    client: 'Go, Send of a NewMIMEMessage',
    path: 'messages.mime',
    type: 'multipart/form-data; boundary=0f9e8d7c6b5a4938271605142332c6f3a0ad6f0a4b1d9d5c7a2f8b3e4d1c',
    body: [
      [`${named('message', '; filename="message.mime"')}\r\nContent-Type: application/octet-stream`, mime],
      [named('to'), 'ann@there.invalid'],
    ],
    expected: { to: ['ann'], tags: { color: 'blue', 'client-id': '12345', tag: 'password-reset' } },
  },
  {
    client: 'Symfony, mailgun+https',
    path: 'messages.mime',
    type: 'multipart/form-data; boundary=QlzCfh3u',
    body: [
      symfony('to', 'ann@there.invalid,bob@there.invalid'),
      [
        [
          'Content-Type: application/octet-stream',
          'Content-Transfer-Encoding: 8bit',
          named('message', '; filename="message.mime"'),
        ].join('\r\n'),
        mime,
      ],
    ],
    expected: {
      to: ['ann', 'bob'],
      tags: { color: 'blue', 'client-id': '12345', tag: 'password-reset' },
    },
  },
  {
    client: 'Symfony, mailgun+api',
    type: 'multipart/form-data; boundary=Nq1mEw8B',
    body: [
      symfony('from', '"Acme, Inc." <app@sender.invalid>'),
      symfony('to', 'ann@there.invalid'),
      symfony('subject', 'Hello'),
      symfony('cc', '"Bee, Cleo" <cleo@there.invalid>'),
      symfony('text', 'Hi'),
      symfony('h:Sender', 'App <app@sender.invalid>'),
      symfony('o:tag', 'password-reset'),
      symfony('v:client-id', '12345'),
    ],
    expected: { to: ['ann', 'cleo'], tags: { 'client-id': '12345', tag: 'password-reset' } },
  },
];

const authorization = ({ key }: World) => `Basic ${Buffer.from(`api:${key}`).toString('base64')}`;

function bytesOf({ type, body }: Recorded): string {
  if (typeof body === 'string') return body;
  const boundary = /boundary="?([^"]+)/.exec(type)![1]!;
  const parts = body.map(([head, content]) => `--${boundary}\r\n${head}\r\n\r\n${content}\r\n`);
  return `${parts.join('')}--${boundary}--\r\n`;
}

test('Mailgun: what the SDKs of PHP, Ruby, Python and Go and Symfony send arrives, signed', async (t) => {
  const world = await startWorld(t);
  const { messages } = world.mx[0]!;
  for (const one of recorded) {
    messages.length = 0;
    const response = await fetch(`${world.url()}/v3/sender.invalid/${one.path ?? 'messages'}`, {
      method: 'POST',
      headers: { authorization: authorization(world), 'content-type': one.type },
      body: bytesOf(one),
    });
    const answer = await response.text();
    t.is(response.status, 200, `${one.client}: ${answer}`);
    const { to, tags = {}, files = [] } = one.expected;
    await until(async () => messages.length === to.length);
    t.deepEqual(messages.map((mail) => mail.to[0]!.split('@')[0]).sort(), to, one.client);
    const [{ tags: kept }] = await world.db('emails').orderBy('id', 'desc').limit(1);
    t.deepEqual(JSON.parse(kept), tags, one.client);
    const { raw } = messages[0]!;
    t.is((await verifyDkim(raw, world.dns))[0]!.result, 'pass', one.client);
    const { subject, attachments } = await PostalMime.parse(raw);
    t.is(subject, 'Hello');
    t.deepEqual(attachments.map(({ filename, mimeType }) => `${filename} ${mimeType}`).sort(), files);
  }
});

test('Mailgun: the lists of suppressions as the SDKs of PHP, Ruby, Python and Go write and read them', async (t) => {
  const world = await startWorld(t);
  const call = async (method: string, path: string, type?: string, body?: string) => {
    const headers = { authorization: authorization(world), ...(type && { 'content-type': type }) };
    const init = body === undefined ? { method, headers } : { method, headers, body };
    const response = await fetch(`${world.url()}/v3/sender.invalid/${path}`, init);
    return { status: response.status, body: JSON.parse(await response.text()) };
  };
  const json = 'application/json';
  const urlEncoded = 'application/x-www-form-urlencoded';
  const phpForm = bytesOf({
    client: '',
    type: 'multipart/form-data; boundary=67444f5e',
    body: [php('code', '550'), php('address', 'php@there.invalid')],
    expected: { to: [] },
  });
  const added: [list: string, type: string, body: string][] = [
    ['bounces', 'multipart/form-data; boundary="67444f5e"', phpForm],
    ['bounces', urlEncoded, 'address=go%40there.invalid&code=550&error=unknown+user'],
    ['bounces', json, '{"address":"python@there.invalid","code":"550","error":"Test error"}'],
    [
      'bounces',
      json,
      '[{"created_at":"Mon, 01 Jan 0001 00:00:00 +0000","code":"","address":"gos@there.invalid","error":""}]',
    ],
    ['unsubscribes', urlEncoded, 'address=ruby%40there.invalid&tag=some_tag'],
    ['complaints', json, '[{"address":"r1@there.invalid"},{"address":"r2@there.invalid"}]'],
  ];
  for (const [list, type, body] of added) t.is((await call('POST', list, type, body)).status, 200, body);
  const first = (await call('GET', 'bounces?limit=3')).body;
  t.is(first.items.length, 3);
  // Ruby's client reads the queries of both, and fails without them.
  for (const name of ['next', 'previous'])
    t.true(new URLSearchParams(new URL(first.paging[name]).search).has('address'), name);
  const { search } = new URL(first.paging.next);
  t.deepEqual(
    (await call('GET', `bounces${search}`)).body.items.map((item: { address: string }) => item.address),
    ['python@there.invalid'],
  );
  const empty = '--67444f5e--\r\n';
  const gone = await call(
    'DELETE',
    'bounces/php%40there.invalid',
    'multipart/form-data; boundary="67444f5e"',
    empty,
  );
  t.deepEqual(gone.body, { message: 'Bounced address has been removed', address: 'php@there.invalid' });
  t.is((await call('DELETE', 'bounces')).status, 405);
});
