/**
 * What one call of a dialect can make the server do: little bodies that ask for much, and lists of what is cheap to send. Times
 * are of the processor.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { stallsAtMost } from '#lab/cost.ts';
import { worldOfFile } from '#lab/scenes/shared-world.ts';
import { asNewTenant, type World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

const shared = worldOfFile();
const maxStallMs = 200;
const from = 'app@sender.invalid';
const subject = 'Hi';

async function post(world: World, path: string, body: string | FormData | URLSearchParams) {
  const basic = Buffer.from(`api:${world.key}`).toString('base64');
  const response = await fetch(world.url() + path, {
    method: 'POST',
    body,
    headers: {
      authorization: path.includes('mailgun') ? `Basic ${basic}` : `Bearer ${world.key}`,
      'x-postmark-server-token': world.key,
      ...(typeof body === 'string' && { 'content-type': 'application/json' }),
    },
  });
  return { status: response.status, text: await response.text() };
}

const emailsOf = async ({ db, orgId }: World) =>
  Number((await db('emails').where({ org_id: orgId }).count({ count: '*' }))[0]!.count);

async function refuses(t: ExecutionContext, path: string, body: () => string | FormData, message: RegExp) {
  const world = await asNewTenant(shared());
  let answer = { status: 0, text: '' };
  await stallsAtMost(t, maxStallMs, async () => {
    answer = await post(world, path, body());
  });
  t.is(answer.status, path.includes('postmark') ? 422 : 400, answer.text.slice(0, 300));
  t.regex(answer.text, message);
  t.true(answer.text.length < 100_000);
  t.is(await emailsOf(world), 0);
}

const sends = {
  resend: ['/compat/resend/emails', { from, to: ['ann@there.invalid'], subject, text: 'Hi' }],
  'resend batch': ['/compat/resend/emails/batch', [{ from, to: ['ann@there.invalid'], subject, text: 'Hi' }]],
  postmark: [
    '/compat/postmark/email',
    { From: from, To: 'ann@there.invalid', Subject: subject, TextBody: 'Hi' },
  ],
  'postmark batch': [
    '/compat/postmark/email/batch',
    [{ From: from, To: 'ann@there.invalid', Subject: subject, TextBody: 'Hi' }],
  ],
  sendgrid: [
    '/compat/sendgrid/v3/mail/send',
    {
      personalizations: [{ to: [{ email: 'ann@there.invalid' }] }],
      from: { email: from },
      subject,
      content: [{ type: 'text/plain', value: 'Hi' }],
    },
  ],
} as const;

/** The places that were looked at element by element. */
const lists: [keyof typeof sends, string[]][] = [
  ['resend', ['to', 'cc', 'attachments', 'tags', 'headers', 'reply_to', 'from']],
  ['resend batch', ['to', 'attachments']],
  ['postmark', ['To', 'Attachments', 'Headers', 'Metadata', 'attachments']],
  ['postmark batch', ['Headers', 'ATTACHMENTS']],
  ['sendgrid', ['personalizations', 'content', 'attachments', 'reply_to_list', 'categories', 'headers']],
];

for (const [name, members] of lists) {
  for (const member of members) {
    test.serial(`${name}: 6 MB of numbers as ${member} are refused before they are looked at`, async (t) => {
      const [path, good] = sends[name];
      const one = Array.isArray(good) ? good[0] : good;
      const { [member]: _, ...rest } = one as Record<string, unknown>;
      const body = `${JSON.stringify(rest).slice(0, -1)},"${member}":[${'1,'.repeat(3_000_000)}1]}`;
      await refuses(
        t,
        path,
        () => (Array.isArray(good) ? `[${body}]` : body),
        /more than [\d,]+ (members|elements)/,
      );
    });
  }
}

test.serial('Resend: the bytes of a file of three megabytes are a list, as old SDKs send them', async (t) => {
  const world = await asNewTenant(shared());
  const [path, good] = sends.resend;
  for (const wrap of [(list: string) => list, (list: string) => `{"type":"Buffer","data":${list}}`]) {
    const content = wrap(`[${Array.from({ length: 3_000_000 }, (_, n) => n % 256)}]`);
    const body = `${JSON.stringify(good).slice(0, -1)},"attachments":[{"filename":"a.bin","content":${content}}]}`;
    const answer = await post(world, path, body);
    t.is(answer.status, 200, answer.text);
  }
  const elsewhere = `${JSON.stringify(good).slice(0, -1)},"attachments":[{"filename":[${'1,'.repeat(60_000)}1]}]}`;
  t.regex((await post(world, path, elsewhere)).text, /members and elements/);
});

test.serial('Postmark: a thousand files with ids beside 2 MB of HTML', async (t) => {
  const world = await asNewTenant(shared());
  const html = '<p>cid: cid:x </p>'.repeat(110_000);
  const Attachments = Array.from({ length: 1_000 }, (_, n) => ({
    Name: `f${n}.png`,
    Content: 'aGk=',
    ContentType: 'image/png',
    ContentID: `file-${n}.png`,
  }));
  const body = { From: from, To: 'ann@there.invalid', Subject: subject, HtmlBody: html, Attachments };
  await stallsAtMost(t, 2 * maxStallMs, async () => {
    const answer = await post(world, '/compat/postmark/email', JSON.stringify(body));
    t.is(answer.status, 200, answer.text);
  });
});

test.serial('Postmark: a file is shown in the HTML if the HTML names its id, whole', async (t) => {
  const world = await asNewTenant(shared());
  const file = (ContentID: string) => ({
    Name: `${ContentID.replace(':', '')}.png`,
    Content: 'aGk=',
    ContentType: 'image/png',
    ContentID,
  });
  const HtmlBody = `<img src="cid:quoted"><img src='cid:single'><b style="background: url(cid:css), url(cid:css2)">cid:text </b>`;
  const Attachments = ['quoted', 'single', 'css', 'css2', 'text', 'quot', 'other', 'cid:prefixed'].map(file);
  const body = { From: from, To: 'ann@there.invalid', Subject: subject, HtmlBody, Attachments };
  t.is((await post(world, '/compat/postmark/email', JSON.stringify(body))).status, 200);
  const [{ MessageID }] = [
    JSON.parse((await post(world, '/compat/postmark/email', JSON.stringify(body))).text),
  ];
  const response = await fetch(`${world.url()}/compat/postmark/messages/outbound/${MessageID}/dump`, {
    headers: { 'x-postmark-server-token': world.key },
  });
  const { Body } = (await response.json()) as { Body: string };
  const ids = [...Body.matchAll(/^Content-ID: <(.*)>/gim)].map(([, id]) => id!.split('@')[0]).sort();
  t.deepEqual(ids, ['css', 'css2', 'prefixed', 'quoted', 'single', 'text']);
});

const personalizations = (count: number, more: object = {}) =>
  Array.from({ length: count }, (_, n) => ({ to: [{ email: `a${n}@there.invalid` }], ...more }));
const sandbox = { mail_settings: { sandbox_mode: { enable: true } } };
const tooMuch = /more than 25 MiB together/;

for (const [mode, more] of [
  ['sent', {}],
  ['in the sandbox', sandbox],
] as const) {
  const mail = (count: number, value: string, own: object = {}, rest: object = {}) =>
    JSON.stringify({
      ...sends.sendgrid[1],
      content: [{ type: 'text/html', value }],
      ...more,
      ...rest,
      personalizations: personalizations(count, own),
    });
  test.serial(`SendGrid, ${mode}: what a call makes is at most 25 MiB`, async (t) => {
    const [path] = sends.sendgrid;
    await refuses(t, path, () => mail(1_000, 'x'.repeat(30_000)), tooMuch);
    const replyTo = Array.from({ length: 1_000 }, (_, n) => ({ email: `a${n}@sender.invalid`, name: 'Ann' }));
    await refuses(t, path, () => mail(1_000, 'x', {}, { reply_to_list: replyTo }), tooMuch);
    const file = { content: Buffer.alloc(30_000).toString('base64'), filename: 'a.bin' };
    await refuses(t, path, () => mail(1_000, 'x', {}, { attachments: [file] }), tooMuch);
    const substitutions = { '-a-': 'y'.repeat(9_000) };
    await refuses(t, path, () => mail(1_000, '-a-'.repeat(10), { substitutions }), tooMuch);
  });
  test.serial(`SendGrid, ${mode}: a thousand substitutions that nearly match`, async (t) => {
    const substitutions = { [`{{${'a'.repeat(5_000)}}}`]: 'x' };
    await refuses(
      t,
      sends.sendgrid[0],
      () => mail(1_000, `{{${'a'.repeat(500_000)}`, { substitutions }),
      tooMuch,
    );
  });
}

function form(fields: Record<string, string>): FormData {
  const made = new FormData();
  for (const [name, value] of Object.entries({ from, subject, ...fields })) made.append(name, value);
  return made;
}

for (const [mode, more] of [
  ['sent', {}],
  ['in test mode', { 'o:testmode': 'yes' }],
] as const) {
  test.serial(`Mailgun, ${mode}: what recipient variables make is at most 25 MiB`, async (t) => {
    const addresses = Array.from({ length: 1_000 }, (_, n) => `a${n}@there.invalid`);
    const variables = (value: object) =>
      JSON.stringify(Object.fromEntries(addresses.map((address) => [address, value])));
    const calls: Record<string, string>[] = [
      { text: 'x'.repeat(32_000), 'recipient-variables': '{}' },
      { text: '%recipient.a%'.repeat(2_500), 'recipient-variables': '{}' },
      { text: '%recipient.a%'.repeat(100), 'recipient-variables': variables({ a: 'y'.repeat(300) }) },
      { text: '%recipient%'.repeat(3_000), 'recipient-variables': '{}' },
      { text: 'Hi', 'h:X-A': 'x'.repeat(16_000), 'h:X-B': 'x'.repeat(16_000), 'recipient-variables': '{}' },
    ];
    for (const call of calls)
      await refuses(
        t,
        '/compat/mailgun/v3/sender.invalid/messages',
        () => form({ to: addresses.join(), ...more, ...call }),
        tooMuch,
      );
  });
}

test.serial('Mailgun: texts that nearly have a variable at each position, and one that has', async (t) => {
  const world = await asNewTenant(shared());
  for (const piece of ['%recipient', '%recipient.', `%recipient.${'a'.repeat(100)}`, '%recipient.a%', '%']) {
    const text = piece.repeat(500_000 / piece.length);
    const send = async () => {
      const answer = await post(
        world,
        '/compat/mailgun/v3/sender.invalid/messages',
        form({ to: 'ann@there.invalid', text, 'recipient-variables': '{"ann@there.invalid":{"a":""}}' }),
      );
      t.true([200, 400].includes(answer.status), answer.text.slice(0, 300));
    };
    await stallsAtMost(t, maxStallMs, send, piece);
  }
});

test.serial('48 MB of white space around and between the elements of a batch', async (t) => {
  const world = await asNewTenant(shared());
  const spaces = ' '.repeat(16_000_000);
  const one = JSON.stringify({ from, to: 'ann@there.invalid', subject, text: 'Hi' });
  await stallsAtMost(t, 2 * maxStallMs, async () => {
    const answer = await post(world, '/api/public/email/batch', `${spaces}[${spaces}${one}${spaces}]`);
    t.is(answer.status, 200, answer.text.slice(0, 300));
  });
});

test.serial(
  'an organization has six stored messages in memory, as long as its clients do not read them',
  async (t) => {
    const world = await asNewTenant(shared());
    const { body } = await world.send({
      to: 'ann@there.invalid',
      html: 'x '.repeat(1_000_000),
      text: 'x '.repeat(1_000_000),
    });
    const path = `/compat/postmark/messages/outbound/${body.emailId}/dump`;
    const head = `GET ${path} HTTP/1.1\r\nHost: x\r\nX-Postmark-Server-Token: ${world.key}\r\n\r\n`;
    const open = async () => {
      const socket = connect(Number(new URL(world.url()).port), '127.0.0.1');
      socket.on('error', () => {}).write(head);
      const [begin] = await once(socket, 'data');
      socket.pause();
      return { socket, status: Number(String(begin).slice(9, 12)) };
    };
    const six = await Promise.all(Array.from({ length: 6 }, open));
    t.deepEqual(new Set(six.map(({ status }) => status)), new Set([200]));
    const seventh = await open();
    t.is(seventh.status, 429);
    for (const { socket } of [...six, seventh]) socket.destroy();
    const again = await until(async () => {
      const { socket, status } = await open();
      socket.destroy();
      return status !== 429 && status;
    });
    t.is(again, 200);
  },
);

test.serial(
  'emails with a thousand recipients: a list has few of them on a page, and all of them',
  async (t) => {
    const world = await asNewTenant(shared());
    const to = Array.from({ length: 1_000 }, (_, n) => `a${n}@there.invalid`).join();
    const later = new Date(world.clock.now() + 86_400_000).toISOString();
    for (let n = 0; n < 15; n++) {
      const fields = { subject: `${n}`, text: 'Hi', 'o:deliverytime': later };
      const body = form({ ...fields, to: n % 5 === 0 ? 'ann@there.invalid' : to });
      t.is((await post(world, '/compat/mailgun/v3/sender.invalid/messages', body)).status, 200);
    }
    const get = async (path: string) => {
      const headers = { authorization: `Bearer ${world.key}` };
      // biome-ignore lint/suspicious/noExplicitAny: what the API says is what the test looks at
      return (await (await fetch(world.url() + path, { headers })).json()) as any;
    };
    const newestFirst = Array.from({ length: 15 }, (_, n) => `${14 - n}`);
    const subjects: string[] = [];
    for (let query = 'limit=100'; query !== ''; ) {
      const { emails, next } = await get(`/api/public/emails?${query}`);
      t.true(emails.length < 12);
      subjects.push(...emails.map((one: { subject: string }) => one.subject));
      query = next === null ? '' : `limit=100&after=${next}`;
    }
    t.deepEqual(subjects, newestFirst);
    const pages = async (direction: 'after' | 'before', start: string) => {
      const found: { id: string; subject: string }[] = [];
      for (let edge = start; ; ) {
        const { data, has_more } = await get(`/compat/resend/emails?limit=100${edge}`);
        if (direction === 'after') found.push(...data);
        else found.unshift(...data);
        if (!has_more) return found;
        edge = `&${direction}=${found.at(direction === 'after' ? -1 : 0)!.id}`;
      }
    };
    const forward = await pages('after', '');
    t.deepEqual(
      forward.map(({ subject }) => subject),
      newestFirst,
    );
    const backward = await pages('before', `&before=${forward.at(-1)!.id}`);
    t.deepEqual(
      backward.map(({ subject }) => subject),
      newestFirst.slice(0, -1),
    );
  },
);
