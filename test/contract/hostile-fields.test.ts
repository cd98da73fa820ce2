/**
 * The fields of a send, beyond the sentences of docs/api.md: line ends and NUL, which could add a header or a command;
 * lone surrogates; values that are nearly right, and values that are only just right. Refused sends leave nothing behind.
 */
import test from 'ava';
import { openTenant, people, sharedWorld, type Tenant } from './client.ts';
import { at, type Row, testRows } from './rows.ts';

/** Every send of `refused` is refused. */
let [refused, accepted]: Tenant[] = [];
const world = sharedWorld(async (made) => {
  refused = await openTenant(made, { quota: 100 });
  accepted = await openTenant(made);
});

test.after('what was refused left nothing behind', async (t) => {
  t.deepEqual(await refused!.books(), { emails: 0, quota: 100, wallet: 0, ledger: 100 });
  for (const table of ['deliveries', 'events', 'idempotency'])
    t.deepEqual(await world().db(table).where({ org_id: refused!.orgId }), [], table);
});

const of = (text: string, times: number) => text.repeat(times);
const pairs = (count: number, key: string, value: string) =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`${n}${key}`, value]));
const file = (over: object) => ({ attachments: [{ filename: 'a.txt', content: 'aGk=', ...over }] });
const header = (name: string, value: unknown) => ({ headers: { [name]: value } });

/** A line end, or what some take for one, in the middle, at the end, and with a header after it. */
const breaks = ['a\r\nBcc: eve@evil.invalid', 'a\r\n', 'a\rb', 'a\nb', 'a\0b'];
const long = of('X', 77);

const refusals: Record<string, Row> = {
  'line ends and NUL': {
    refuses: breaks.flatMap((text): [string, object][] => [
      ['to', { to: `${text}@there.invalid` }],
      ['to.0', { to: [`ann@there.invalid${text}`] }],
      ['subject', { subject: text }],
      ['replyTo', { replyTo: `ann@there.invalid${text}` }],
      ['idempotencyKey', { idempotencyKey: text }],
      ['attachments.0.filename', file({ filename: text })],
      ['attachments.0.contentType', file({ contentType: `text/${text}` })],
      ['headers.X-A', header('X-A', text)],
      ['headers.Reply-To', header('Reply-To', `a@b.invalid${text}`)],
      ['tags.a', { tags: { a: text } }],
      [`tags.${text}`, { tags: { [text]: 'v' } }],
    ]) as Row['refuses'],
  },
  'lone surrogates': {
    refuses: [
      ['to', { to: '\ud800@there.invalid' }],
      ['subject', { subject: 'a\udc00' }],
      ['attachments.0.filename', file({ filename: '\ud800.txt' })],
      ['headers.X-A', header('X-A', '\ud800')],
      ['tags.a', { tags: { a: '\ud800' } }],
    ],
  },
  'recipients that are nearly addresses': {
    refuses: [
      ...['ann@[192.0.2.1]', 'root@localhost', 'ann@there.invalid ', `${of('a', 65)}@there.invalid`].map(
        (to): [string, object] => ['to', { to }],
      ),
      ...at('to', { to: 'ann@there.invalid>\r\nRCPT TO:<eve@evil.invalid' }),
      ...at('to.0', { to: [''] }, { to: [['ann@there.invalid']] }),
      ...at('to.1', { to: ['ann@there.invalid', 'bob'] }),
    ] as Row['refuses'],
  },
  'senders that are nearly one': {
    refuses: [
      'app@sender',
      'app@[127.0.0.1]',
      'a@sender.invalid <b@sender.invalid>',
      'App <a@sender.invalid> x',
      'App <a@sender.invalid>, b@sender.invalid',
      'App\r\nBcc: eve@evil.invalid <app@sender.invalid>',
      '"A\r\n" <app@sender.invalid>',
      'App <app@sender.invalid>\r\n',
      'App <app@sender.invalid\n>',
      'A\0 <app@sender.invalid>',
      'A\rB <app@sender.invalid>',
      '\ud800 <app@sender.invalid>',
      `${of('n', 1000)} <app@sender.invalid>`,
    ].map((from) => ['BAD_REQUEST', { from }]),
  },
  'lists where a text belongs, which have a length too': {
    refuses: [
      ...at('subject', { subject: [] }),
      ...at('replyTo', { replyTo: ['ann@there.invalid'] }),
      ...at('idempotencyKey', { idempotencyKey: [] }),
      ...at('attachments.0.filename', file({ filename: [] })),
      ...at('tracking', { tracking: [] }),
    ],
  },
  'attachments that are nearly right': {
    refuses: [
      ...['====', 'aGk==', 'aG=k', 'aGké'].flatMap((content) =>
        at('attachments.0.content', file({ content })),
      ),
      ...['', 'pdf', `text/${of('x', 128)}`, 'text/plain; x=é'].flatMap((contentType) =>
        at('attachments.0.contentType', file({ contentType })),
      ),
      ...['', '.sh', 'a.pdf.Exe', 'x/y\\z.bAt'].flatMap((filename) =>
        at('attachments.0.filename', file({ filename })),
      ),
      ...at('attachments.1.content', {
        attachments: [
          { filename: 'a', content: 'aGk=' },
          { filename: 'b', content: '?' },
        ],
      }),
    ],
  },
  'custom headers that are nearly right': {
    refuses: [
      ...at('headers.X-A', header('X-A', of('v', 16_385))),
      ...at(`headers.${long}`, header(long, 'v')),
      ...at('headers.Reply-To', header('Reply-To', 'a@b.invalid, c@d.invalid')),
      ...at('headers.sender', header('sender', 'App')),
    ],
  },
};

const acceptances: Record<string, Row> = {
  'texts that are just right': {
    takes: [
      { subject: ' ' },
      { text: 'a\rb\nc\0', html: '\r\n\0' },
      { to: people(1).map((address) => `${address.slice(0, 2)}${of('a', 62)}@nowhere.invalid`)[0] },
      { to: 'jörg@bücher.invalid' },
      { from: 'APP@SENDER.INVALID' },
    ],
  },
  'attachments that are just right': {
    takes: [
      file({ content: 'aGVs\r\nbG8g\ndGhl\rcmU=\n' }),
      file({ filename: of('ü', 255) }),
      file({ filename: 'bash' }),
      file({ contentType: 'text/plain; charset=utf-8; format=flowed' }),
    ],
  },
  'custom headers and tags that are just right': {
    takes: [
      { headers: pairs(10, '-x', of('用', 16_384)) },
      { tags: pairs(10, of('k', 63), of('v', 256)) },
      { tags: { constructor: 'x', toString: 'y' } },
    ],
  },
};

testRows('2 refused: ', refusals, () => refused!);
testRows('2 taken: ', acceptances, () => accepted!);
