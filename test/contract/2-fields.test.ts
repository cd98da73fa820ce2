/** docs/api.md, sections 2.1 to 2.3: the send request, field by field; what each takes and what it refuses. */
import test from 'ava';
import { cliOf } from '../lab/cli.ts';
import { until } from '../lab/until.ts';
import { isError, isSent, mailTo } from './answer.ts';
import { emailPath, openTenant, people, sharedWorld, someone, type Tenant } from './client.ts';
import { at, type Fields, type Row, testRows } from './rows.ts';

let tenant: Tenant;
const world = sharedWorld(async (made) => {
  tenant = await openTenant(made);
});

const x = (times: number) => 'x'.repeat(times);
const pairs = (count: number, key = 'X-N', value = 'v') =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`${n}${key}`, value]));
const file = (over: object = {}) => ({ attachments: [{ filename: 'a.txt', content: 'aGk=', ...over }] });
const files = (...sizes: number[]) => ({
  attachments: sizes.map((size) => ({ filename: 'a', content: Buffer.alloc(size).toString('base64') })),
});
const mebibyte = 2 ** 20;

/** Everything but a string, at a field. */
const noStrings = (field: string): [string, Fields][] =>
  [5, true, null, { a: 'b' }, ['x']].map((value) => [field, { [field]: value }]);
/** Everything but an object, at a field. */
const noObjects = (field: string): [string, Fields][] =>
  ['x', 5, true, null, ['x']].map((value) => [field, { [field]: value }]);

const rows: Record<string, Row> = {
  '2.1 to: string or array of string, required': {
    takes: [{ to: someone() }, { to: [someone()] }],
    refuses: [
      ['to', { to: undefined }],
      ...[5, true, null, { a: 'b' }].map((to): [string, Fields] => ['to', { to }]),
      ...[5, true, null, {}].map((one): [string, Fields] => ['to.1', { to: [someone(), one] }]),
    ],
  },
  '2.1 to: one recipient address': {
    refuses: ['', 'ann', 'ann@', '@there.invalid', 'a b@there.invalid'].map((to) => ['to', { to }]),
  },
  '2.1 to: an array of at most 10 addresses': {
    takes: [{ to: people(2) }, { to: people(10) }],
    refuses: [
      ['to', { to: people(11) }],
      ['to', { to: [] }],
      ['to.0', { to: ['ann'] }],
    ],
  },
  '2.1 from: string, required': {
    refuses: [['from', { from: undefined }], ...noStrings('from')],
  },
  '2.1 from: plain or in display-name form (Name <address>)': {
    takes: [
      { from: 'app@sender.invalid' },
      { from: 'App <app@sender.invalid>' },
      { from: '"Lee, Ann" <ann@sender.invalid>' },
    ],
  },
  '2.1 subject: string, required': {
    refuses: [['subject', { subject: undefined }], ...noStrings('subject')],
  },
  '2.1 subject: 1 to 998 characters': {
    takes: [{ subject: 'x' }, { subject: x(998) }],
    refuses: [
      ['subject', { subject: '' }],
      ['subject', { subject: x(999) }],
    ],
  },
  '2.1 html: string': { takes: [{ html: '<p>Hi</p>' }], refuses: noStrings('html') },
  '2.1 text: string': { takes: [{ text: 'Hi' }], refuses: noStrings('text') },
  '2.1 html, text: at least one of them is required': {
    takes: [{ html: '<p>Hi</p>', text: undefined }],
    refuses: at('html', { html: undefined, text: undefined }),
  },
  '2.1 replyTo: string, not required': { refuses: noStrings('replyTo') },
  '2.1 replyTo: a valid email address': {
    takes: [{ replyTo: 'help@there.invalid' }],
    refuses: ['', 'help', 'help@', '@there.invalid', 'a b@c.invalid'].map((replyTo) => [
      'replyTo',
      { replyTo },
    ]),
  },
  '2.1 attachments: array of attachment objects, not required': {
    takes: [{ attachments: [] }, file(), files(1, 2, 3)],
    refuses: [
      ...['x', 5, true, null, { filename: 'a', content: 'aGk=' }].map((attachments): [string, Fields] => [
        'attachments',
        { attachments },
      ]),
      ...['x', 5, null].map((one): [string, Fields] => ['attachments.0', { attachments: [one] }]),
    ],
  },
  '2.1 attachments: total payload at most 10 MB': {
    isLarge: true,
    takes: [files(10 * mebibyte), files(4 * mebibyte, 6 * mebibyte)],
    refuses: at('attachments', files(10 * mebibyte + 1), files(4 * mebibyte, 6 * mebibyte, 1)),
  },
  '2.1 headers: object of string keys to string values, not required': {
    takes: [{ headers: {} }, { headers: { 'X-App': 'web' } }],
    refuses: [
      ...noObjects('headers'),
      ...[5, true, null, ['x']].map((value): [string, Fields] => [
        'headers.X-App',
        { headers: { 'X-App': value } },
      ]),
    ],
  },
  '2.1 headers: at most 10 pairs': {
    takes: [{ headers: pairs(10) }],
    refuses: [['headers', { headers: pairs(11) }]],
  },
  '2.1 headers: From, To, Subject and DKIM-Signature cannot be overridden': {
    refuses: ['From', 'To', 'Subject', 'DKIM-Signature', 'FROM', 'to', 'sUBJECT', 'dkim-signature'].map(
      (name) => [`headers.${name}`, { headers: { [name]: 'eve@evil.invalid' } }],
    ),
  },
  '2.1 tags: object of string keys to string values, not required': {
    takes: [{ tags: {} }, { tags: { kind: 'welcome' } }],
    refuses: [
      ...noObjects('tags'),
      ...[5, true, null, ['x']].map((value): [string, Fields] => ['tags.a', { tags: { a: value } }]),
    ],
  },
  '2.1 tags: at most 10 pairs': {
    takes: [{ tags: pairs(10) }],
    refuses: [['tags', { tags: pairs(11) }]],
  },
  '2.1 tags: key at most 64 characters': {
    takes: [{ tags: { [x(64)]: 'v' } }],
    refuses: [[`tags.${x(65)}`, { tags: { [x(65)]: 'v' } }]],
  },
  '2.1 tags: value at most 256 characters': {
    takes: [{ tags: { a: x(256) } }],
    refuses: [['tags.a', { tags: { a: x(257) } }]],
  },
  '2.1 tracking: tracking object, not required': {
    takes: [{ tracking: {} }],
    refuses: noObjects('tracking'),
  },
  '2.1 idempotencyKey: string, not required': { refuses: noStrings('idempotencyKey') },
  '2.1 idempotencyKey: at most 255 characters': {
    takes: [{ idempotencyKey: 'k' }, { idempotencyKey: x(255) }],
    refuses: [
      ['idempotencyKey', { idempotencyKey: x(256) }],
      ['idempotencyKey', { idempotencyKey: '\ud800' }],
    ],
  },
  '2.2 filename: string, required': {
    refuses: [undefined, 5, true, null, {}].map((filename) => ['attachments.0.filename', file({ filename })]),
  },
  '2.2 content: string, required': {
    refuses: [undefined, 5, true, null, {}].map((content) => ['attachments.0.content', file({ content })]),
  },
  '2.2 content: Base64-encoded': {
    takes: [file({ content: 'AA==' }), file({ content: '+/+/' })],
    refuses: ['?', 'aGk', 'a-_b', 'data:text/plain;base64,aGk='].map((content) => [
      'attachments.0.content',
      file({ content }),
    ]),
  },
  '2.2 contentType: string, not required': {
    takes: [file({ contentType: 'application/pdf' })],
    refuses: [5, true, null, {}].map((contentType) => ['attachments.0.contentType', file({ contentType })]),
  },
  '2.2 executable files (extensions .exe, .bat, .sh) are rejected': {
    takes: ['exe', 'a.exe.txt', 'a.shx', 'a.batch'].map((filename) => file({ filename })),
    refuses: ['a.exe', 'a.bat', 'a.sh', 'A.EXE', 'a.txt.Bat'].map((filename) => [
      'attachments.0.filename',
      file({ filename, contentType: 'text/plain' }),
    ]),
  },
  '2.3 openTracking: boolean, not required': {
    takes: [{ tracking: { openTracking: true } }, { tracking: { openTracking: false } }],
    refuses: ['true', 1, null, {}].map((openTracking) => [
      'tracking.openTracking',
      { tracking: { openTracking } },
    ]),
  },
  '2.3 clickTracking: boolean, not required': {
    takes: [{ tracking: { clickTracking: true } }, { tracking: { clickTracking: false } }],
    refuses: ['false', 0, null, []].map((clickTracking) => [
      'tracking.clickTracking',
      { tracking: { clickTracking } },
    ]),
  },
};

testRows('', rows, () => tenant);

// What the fields come to, at the other end.

test('2.1 to, from, subject, html, text, replyTo: what arrives', async (t) => {
  const to = people(2);
  const answer = await tenant.send({
    to,
    from: 'App <app@sender.invalid>',
    subject: 'Your order',
    text: 'Thanks, Jörg',
    html: '<p>Thanks, <b>Jörg</b></p>',
    replyTo: 'help@there.invalid',
  });
  isSent(t, answer, to);
  for (const recipient of to) {
    const { header, parts } = await mailTo(world(), recipient);
    t.regex(header('From').join(), /^"?App"? <app@sender\.invalid>$/);
    t.deepEqual(header('Subject'), ['Your order']);
    t.deepEqual(header('Reply-To'), ['help@there.invalid']);
    t.deepEqual(
      parts.map(({ type, content }) => [type.split(';')[0], content.toString().trim()]),
      [
        ['text/plain', 'Thanks, Jörg'],
        ['text/html', '<p>Thanks, <b>Jörg</b></p>'],
      ],
    );
  }
});

test('2.1 from: the domain must be registered in the organization', async (t) => {
  const other = await openTenant(world());
  await other.addDomain('other.invalid');
  for (const from of ['app@nobodys.invalid', 'App <app@sub.sender.invalid>', 'app@other.invalid'])
    isError(t, await tenant.send({ from }), '403 DOMAIN_NOT_FOUND', from);
  isSent(t, await other.send({ from: 'app@other.invalid' }));
});

test('2.1 headers: custom MIME headers arrive', async (t) => {
  const to = someone();
  isSent(
    t,
    await tenant.send({ to, headers: { 'X-Order': '4711', 'List-Unsubscribe': '<mailto:a@b.invalid>' } }),
  );
  const { header } = await mailTo(world(), to);
  t.deepEqual([header('X-Order'), header('List-Unsubscribe')], [['4711'], ['<mailto:a@b.invalid>']]);
});

test('2.1 tracking: overrides; a member left out keeps the setting of the sender domain, off at first', async (t) => {
  const own = await openTenant(world());
  const seen = async (fields: object) => {
    const { body } = await own.send(fields);
    return (await own.call('GET', emailPath(body.emailId))).body.tracking;
  };
  t.deepEqual(await seen({}), { openTracking: false, clickTracking: false });
  await cliOf(t, world()).json('domain tracking sender.invalid --opens on --clicks off --org', own.orgId);
  await until(async () => (await seen({})).openTracking, { what: 'the setting' });
  t.deepEqual(await seen({}), { openTracking: true, clickTracking: false });
  t.deepEqual(await seen({ tracking: {} }), { openTracking: true, clickTracking: false });
  t.deepEqual(await seen({ tracking: { clickTracking: true } }), { openTracking: true, clickTracking: true });
  t.deepEqual(await seen({ tracking: { openTracking: false } }), {
    openTracking: false,
    clickTracking: false,
  });
});

test('2.2 filename, content, contentType: what arrives', async (t) => {
  const to = someone();
  const content = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
  const attachments = [
    { filename: 'all bytes.bin', content: content.toString('base64'), contentType: 'application/x-bytes' },
    { filename: 'note.txt', content: 'aGk=' },
  ];
  isSent(t, await tenant.send({ to, attachments }));
  const [, bytes, note] = (await mailTo(world(), to)).parts;
  t.regex(bytes!.type, /^application\/x-bytes/);
  t.regex(bytes!.disposition, /^attachment;.*filename="all bytes\.bin"/);
  t.deepEqual(bytes!.content, content);
  t.regex(note!.disposition, /^attachment;.*filename="?note\.txt"?/);
  t.is(note!.content.toString(), 'hi');
});

test('2.3 tracking: a member of another name is nothing', async (t) => {
  isSent(t, await tenant.send({ tracking: { pixels: 'yes' } }));
});
