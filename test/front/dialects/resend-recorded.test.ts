/**
 * What the official SDKs of Resend for Python, Ruby, PHP and Go send, by their sources (resend-python 2.39, resend-ruby 1.10,
 * resend-php 1.10, resend-go 3.12): bodies with GET, none with POST, files as lists of bytes, chunks, members that only they have.
 */
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import test from 'ava';
import PostalMime from 'postal-mime';
import { verifyDkim } from '#lab/dkim.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';

const json = { 'content-type': 'application/json' };
/** Python gives GET and POST an empty object; PHP does for POST. The others send no body. */
const sdks = {
  python: { agent: 'resend-python:2.39.0', headers: json, isChunked: false, empty: '{}', emptyGet: '{}' },
  ruby: { agent: 'resend-ruby:1.10.0', headers: json, isChunked: false, empty: '', emptyGet: '' },
  php: { agent: 'resend-php/1.10.0', headers: {}, isChunked: false, empty: '{}', emptyGet: '' },
  go: { agent: 'resend-go/3.12.0', headers: {}, isChunked: true, empty: '', emptyGet: '' },
};
type Sdk = keyof typeof sdks;

async function call(world: World, sdk: Sdk, route: string, body?: string, more: Record<string, string> = {}) {
  const [method, path] = route.split(' ') as [string, string];
  const { agent, headers: own, isChunked, empty, emptyGet } = sdks[sdk];
  const given = body ?? (method === 'POST' ? empty : emptyGet);
  const length = isChunked && given ? {} : { 'content-length': String(Buffer.byteLength(given)) };
  const headers = {
    accept: 'application/json',
    'user-agent': agent,
    authorization: `Bearer ${world.key}`,
    ...(given ? json : own),
    ...length,
    ...more,
  };
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request(`${world.url()}${path}`, { method, headers }, resolve).on('error', reject).end(given);
  });
  t200(response, route);
  return JSON.parse(await text(response));
}

function t200({ statusCode, headers }: IncomingMessage, route: string) {
  if (statusCode !== 200 && statusCode !== 201) throw new Error(`${route}: ${statusCode}`);
  // PHP's and Python's take nothing else.
  if (!headers['content-type']?.startsWith('application/json')) throw new Error(`${route}: no JSON`);
}

/** As Python's json.dumps, PHP's and Ruby's encoders, and Go's, which escapes HTML and ends the line, write it. */
const sends: Record<Sdk, string> = {
  python:
    '{"from": "Acme <app@sender.invalid>", "to": ["ann@there.invalid"], "subject": "hi", "html": "<strong>\\u00e9</strong>", ' +
    '"reply_to": "help@sender.invalid", "tags": [{"name": "plan", "value": "pro"}], "headers": {"X-Entity-Ref-ID": "7"}, ' +
    '"attachments": [{"filename": "a.pdf", "content": [37, 80, 68, 70], "content_type": "application/pdf"}]}',
  ruby:
    '{"from":"Acme <app@sender.invalid>","to":["ann@there.invalid"],"subject":"hi","reply_to":["help@sender.invalid"],' +
    '"headers":{"X-Entity-Ref-ID":"7"},"tags":[{"name":"plan","value":"pro"}],' +
    '"attachments":[{"filename":"a.pdf","content":[37,80,68,70],"content_id":"a@mail"}],"text":"é","html":"<strong>é</strong>"}',
  php:
    '{"from":"Acme <app@sender.invalid>","to":["ann@there.invalid"],"subject":"hi","html":"<strong>\\u00e9<\\/strong>",' +
    '"reply_to":["help@sender.invalid"],"cc":[],"bcc":[],"text":null,"headers":{"X-Entity-Ref-ID":"7"},' +
    '"tags":[{"name":"plan","value":"pro"}],"attachments":[{"filename":"a.pdf","content":"JVBERg==","content_type":null}]}',
  go:
    '{"from":"Acme \\u003capp@sender.invalid\\u003e","to":["ann@there.invalid"],"subject":"hi","reply_to":"help@sender.invalid",' +
    '"html":"\\u003cstrong\\u003eé\\u003c/strong\\u003e","tags":[{"name":"plan","value":"pro"}],' +
    '"attachments":[{"content":[37,80,68,70],"filename":"a.pdf","inline_content_id":"a@mail"}],"headers":{"X-Entity-Ref-ID":"7"}}\n',
};

test('Resend: what the SDKs for Python, Ruby, PHP and Go send is understood', async (t) => {
  const world = await startWorld(t, { tenant: { quota: 1000 } });
  for (const sdk of Object.keys(sends) as Sdk[]) {
    const send = (body: string, more = {}) => call(world, sdk, 'POST /emails', body, more);
    world.mx[0]!.messages.length = 0;
    const { id } = await send(sends[sdk], { 'idempotency-key': `order-${sdk}` });
    t.is((await send(sends[sdk], { 'idempotency-key': `order-${sdk}` })).id, id, sdk);
    await world.when(id, ({ status }) => status === 'delivered');
    const { raw } = world.mx[0]!.messages[0]!;
    t.is((await verifyDkim(raw, world.dns))[0]!.result, 'pass', sdk);
    const mail = await PostalMime.parse(raw);
    t.like(
      mail,
      { from: { name: 'Acme' }, subject: 'hi', replyTo: [{ address: 'help@sender.invalid' }] },
      sdk,
    );
    t.regex(mail.html!, /<strong>é<\/strong>/, sdk);
    const [file] = mail.attachments;
    t.deepEqual(
      [file!.filename, Buffer.from(file!.content as ArrayBuffer).toString()],
      ['a.pdf', '%PDF'],
      sdk,
    );
    if (sdk === 'ruby' || sdk === 'go') t.is(file!.contentId, '<a@mail>', sdk);
    t.like(
      await call(world, sdk, `GET /emails/${id}`),
      { object: 'email', id, last_event: 'delivered' },
      sdk,
    );
    t.is((await call(world, sdk, `GET /emails/${id}/attachments`)).data.length, 1, sdk);
    t.is((await call(world, sdk, 'GET /emails?limit=1')).data[0].id, id, sdk);

    const later = await send(sends[sdk].replace(/\}\s*$/, ',"scheduled_at":"in 1 hour"}'));
    const at = new Date(world.clock.now() + 7_200_000).toISOString();
    // Python's, Go's and Ruby's name the email in the body, too.
    const change = JSON.stringify({ id: later.id, email_id: later.id, scheduled_at: at });
    t.deepEqual(
      await call(world, sdk, `PATCH /emails/${later.id}`, change),
      { object: 'email', id: later.id },
      sdk,
    );
    t.like(await call(world, sdk, `POST /emails/${later.id}/cancel`), { id: later.id }, sdk);

    const bad = sends[sdk].replace('ann@there.invalid', 'nobody');
    const batch = await call(world, sdk, 'POST /emails/batch', `[${sends[sdk]},${bad}]`, {
      'x-batch-validation': 'permissive',
    });
    t.is(batch.data.length, 1, sdk);
    t.like(batch.errors, [{ index: 1 }], sdk);

    const domain = await call(world, sdk, 'POST /domains', `{"name":"${sdk}.example","region":"us-east-1"}`);
    t.is((await call(world, sdk, `POST /domains/${domain.id}/verify`)).id, domain.id, sdk);
    t.true((await call(world, sdk, `DELETE /domains/${domain.id}`)).deleted, sdk);
  }
});
