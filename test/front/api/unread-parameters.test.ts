/** What callers give and nothing reads, or reads as they mean it: parameters, nulls, scalars, fields of a delivery. */

import test from 'ava';
import Mailgun from 'mailgun.js';
import { ServerClient } from 'postmark';
import { Resend } from 'resend';
import { startWorld, type World } from '#lab/scenes/world.ts';

const header = 'x-postern-ignored';
const good = { to: 'ann@there.invalid', subject: 'Hi', text: 'Hi' };

async function ask(world: World, path: string, headers: Record<string, string> = {}) {
  const authorization = `Bearer ${world.key}`;
  const response = await fetch(`${world.url()}${path}`, { headers: { authorization, ...headers } });
  return { status: response.status, ignored: response.headers.get(header), body: await response.json() };
}

test('parameters that nothing reads are named, and of one that is repeated the last counts', async (t) => {
  const world = await startWorld(t);
  const api = '/api/public';
  t.is((await ask(world, `${api}/suppressions?page=2&limit=5`)).ignored, 'page');
  t.is((await ask(world, `${api}/domains?page=2&per%20page=3`)).ignored, 'page, per?page');
  t.is((await ask(world, `${api}/suppressions?limit=5`)).ignored, null);
  t.is((await ask(world, `${api}/suppressions?limit=x&limit=5`)).status, 200);
  t.is((await ask(world, `${api}/suppressions?limit=5&limit=x`)).status, 400);
  t.is((await ask(world, `${api}/events?type=email.queued&type=email.delivered`)).status, 200);
  t.is((await ask(world, `${api}/events?type=email.queued&type=x`)).status, 400, 'a list is read whole');
  t.is((await ask(world, `${api}/domains?constructor=1&__proto__=2`)).ignored, 'constructor, __proto__');
  const many = Array.from({ length: 50 }, (_, n) => `p${n}=1`).join('&');
  t.is((await ask(world, `${api}/domains?${many}`)).ignored!.split(', ').length, 11);

  t.is((await ask(world, '/emails?page=2&limit=5')).ignored, 'page');
  t.is((await ask(world, '/emails?limit=7&limit=5')).status, 200);
  t.is((await ask(world, '/domains?offset=1')).ignored, 'offset');
  const basic = `Basic ${Buffer.from(`api:${world.key}`).toString('base64')}`;
  const mailgun = (path: string) => ask(world, `/v3/sender.invalid/${path}`, { authorization: basic });
  t.is((await mailgun('bounces?limit=1&limit=2&skip=5')).ignored, 'skip');
  t.is((await mailgun('events?limit=1&limit=2&skip=5')).ignored, 'skip');
  const postmark = await ask(world, '/messages/outbound?Count=5&offset=0&metadata_a=1&page=2', {
    'x-postmark-server-token': world.key,
    authorization: '',
  });
  t.is(postmark.ignored, 'page');
  t.is((await ask(world, '/v3/suppression/bounces?limit=1&limit=5&page=2')).ignored, 'page');
});

test('null for an optional member is as if it were not given, in our own API too', async (t) => {
  const world = await startWorld(t);
  const optional = [
    'cc',
    'bcc',
    'html',
    'replyTo',
    'attachments',
    'headers',
    'tags',
    'tracking',
    'scheduledAt',
  ];
  for (const name of [...optional, 'expiresAfter', 'idempotencyKey'])
    t.is((await world.send({ ...good, [name]: null, subject: name })).status, 200, name);
  const file = { filename: 'a.txt', content: 'YQ==', contentType: null, contentId: null, url: null };
  t.is((await world.send({ ...good, attachments: [file], tracking: { openTracking: null } })).status, 200);
  for (const name of ['to', 'subject']) t.is((await world.send({ ...good, [name]: null })).status, 400);
  t.is((await world.send({ ...good, text: null })).status, 400, 'without any content');
  const body = JSON.stringify({ address: 'bob@there.invalid', reason: null });
  t.is((await world.call('POST', '/api/public/suppressions', { body })).status, 200);
});

test('Return-Path, MIME-Version and scalars in the calls of other services', async (t) => {
  const world = await startWorld(t);
  const url = world.url();
  const headers = {
    'Return-Path': '<bounces@sender.invalid>',
    'MIME-Version': '1.0',
    'X-Order': 4711 as never,
  };
  const from = 'app@sender.invalid';
  const resend = new Resend(world.key, { baseUrl: url });
  const tags = [{ name: 'paid', value: true as never }];
  const sent = await resend.emails.send({ ...good, subject: 42 as never, from, headers, tags });
  t.is(sent.error, null);
  const postmark = new ServerClient(world.key, { requestHost: new URL(url).host, useHttps: false });
  const model = { From: from, To: 'bob@there.invalid', Subject: 43 as never, TextBody: 'Hi' };
  const Headers = Object.entries(headers).map(([Name, Value]) => ({ Name, Value }));
  const Metadata = { id: 7 as never, ok: false as never };
  t.is((await postmark.sendEmail({ ...model, Headers, Metadata, Tag: 5 as never })).ErrorCode, 0);
  const mailgun = new Mailgun(FormData).client({ username: 'api', key: world.key, url });
  const fields = { 'h:Return-Path': 'b@sender.invalid', 'h:MIME-Version': '1.0' };
  t.truthy((await mailgun.messages.create('sender.invalid', { ...good, from, ...fields })).id);
  const response = await fetch(`${url}/v3/mail/send`, {
    method: 'POST',
    headers: { authorization: `Bearer ${world.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      personalizations: [{ to: [{ email: 'cid@there.invalid', name: 7 }], headers }],
      from: { email: from },
      subject: 44,
      content: [{ type: 'text/plain', value: 5 }],
      categories: [1, true],
      custom_args: { id: 7 },
    }),
  });
  t.is(response.status, 202, await response.text());
  await world.when(sent.data!.id, ({ status }) => status === 'delivered');
  const message = world.mx[0]!.messages.find(({ raw }) => raw.includes('Subject: 42'))!.raw.toString();
  t.notRegex(message, /^Return-Path:/im);
  t.is(message.match(/^MIME-Version:/gim)?.length, 1);
  t.regex(message, /^X-Order: 4711/m);
});
