/** Streams as other services name them: Postmark's message streams, SendGrid's groups and categories, Mailgun's tags, Resend's topics. */
import { randomUUID } from 'node:crypto';
import sendgridClient from '@sendgrid/client';
import sendgridMail from '@sendgrid/mail';
import test from 'ava';
import Mailgun from 'mailgun.js';
import { ServerClient } from 'postmark';
import { Resend } from 'resend';
import { makeStream } from '#accounts/manage-streams.ts';
import { worldOfFile } from '#lab/scenes/shared-world.ts';
import { asNewTenant, type World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { streamNumber } from '#platform/values/stream.ts';

const shared = worldOfFile();

async function start(): Promise<World> {
  return asNewTenant(shared());
}

const postmarkOf = (world: World) =>
  new ServerClient(world.key, { requestHost: new URL(world.url()).host, useHttps: false });

const mail = { From: 'app@sender.invalid', To: 'ann@there.invalid', Subject: 'Hi', TextBody: 'Hi' };

const lists = async ({ db, orgId }: World) =>
  (await db('suppressions').where({ org_id: orgId }).orderBy('address')).map(
    (row) => `${row.stream}:${row.address}`,
  );

test('Postmark: the broadcast stream is there from the start, and its mail can be left', async (t) => {
  const world = await start();
  const client = postmarkOf(world);
  const To = `${world.orgId}@there.invalid`;
  const sent = await client.sendEmail({ ...mail, To, MessageStream: 'broadcast' });
  t.is((await world.get(sent.MessageID)).stream, 'broadcast');
  const { raw } = await until(() => world.mx[0]!.messages.find(({ to }) => to.includes(To)));
  t.regex(raw.toString('latin1'), /^List-Unsubscribe-Post: List-Unsubscribe=One-Click/m);
  const plain = await client.sendEmail({ ...mail, Subject: 'Plain', MessageStream: 'outbound' });
  t.is((await world.get(plain.MessageID)).stream, undefined);
  t.is((await client.getMessageStreams()).TotalCount, 2);
  const found = await client.getOutboundMessages({ messageStream: 'broadcast' });
  t.deepEqual(
    found.Messages.map(({ MessageStream }) => MessageStream),
    ['broadcast'],
  );
});

test('Postmark: streams are made, shown, renamed and archived; each has its suppressions', async (t) => {
  const world = await start();
  const client = postmarkOf(world);
  const made = await client.createMessageStream({
    ID: 'news',
    Name: 'News',
    MessageStreamType: 'Broadcasts',
  });
  t.like(made, { ID: 'news', Name: 'News', MessageStreamType: 'Broadcasts' });
  t.is((await client.editMessageStream('news', { Name: 'Our news' })).Name, 'Our news');
  await t.throwsAsync(client.editMessageStream('news', { Name: 'Our\0news' }), {
    message: /one line of text/,
  });
  t.is(
    (await client.getMessageStream('news')).SubscriptionManagementConfiguration.UnsubscribeHandlingType,
    'Postmark' as never,
  );
  await client.createSuppressions('news', { Suppressions: [{ EmailAddress: 'ann@there.invalid' }] });
  t.deepEqual(await lists(world), ['news:ann@there.invalid']);
  t.is((await client.getSuppressions('news')).Suppressions.length, 1);
  t.is((await client.getSuppressions('outbound')).Suppressions.length, 0);
  await t.throwsAsync(client.sendEmail({ ...mail, MessageStream: 'news' }), { message: /inactive/ });
  t.is((await client.sendEmail(mail)).ErrorCode, 0);
  await client.deleteSuppressions('news', { Suppressions: [{ EmailAddress: 'ann@there.invalid' }] });
  t.deepEqual(await lists(world), []);
  t.is(String((await client.archiveMessageStream('news')).ID), 'news');
  await t.throwsAsync(client.sendEmail({ ...mail, MessageStream: 'news' }), {
    message: /no stream|no message stream/,
  });
});

test('SendGrid: a group, or a category that names a stream, is the stream', async (t) => {
  const world = await start();
  const mailer = new (sendgridMail.constructor as new () => typeof sendgridMail)();
  const client = new (sendgridClient.constructor as new () => typeof sendgridClient)();
  client.setApiKey(`SG.${world.key}`);
  client.setDefaultHeader('Authorization', `Bearer ${world.key}`);
  client.setDefaultRequest('baseUrl', world.url());
  mailer.setClient(client);
  const [{ statusCode, body }] = await client.request({
    method: 'POST',
    url: '/v3/asm/groups',
    body: { name: 'News', description: 'Our news' },
  });
  t.is(statusCode, 201);
  const { id } = body as { id: number };
  const base = { to: 'ann@there.invalid', from: 'app@sender.invalid', text: 'Hi' };
  const streamOf = async (fields: object) => {
    const [{ headers }] = await mailer.send({ ...base, subject: randomUUID(), ...fields });
    return (await world.get(headers['x-message-id'])).stream;
  };
  t.is(await streamOf({ asm: { groupId: id } }), 'news');
  // A key is remembered for a second, and with it that its organization had no streams.
  await until(async () => (await streamOf({ categories: ['welcome', 'news'] })) === 'news');
  t.is(await streamOf({ categories: ['welcome'] }), undefined);
  await client.request({
    method: 'POST',
    url: `/v3/asm/groups/${id}/suppressions`,
    body: { recipient_emails: ['bob@there.invalid'] },
  });
  t.deepEqual(await lists(world), ['news:bob@there.invalid']);
  const [{ body: groups }] = await client.request({ method: 'GET', url: '/v3/asm/groups' });
  t.like(groups, [{ id, name: 'news', description: 'Our news', unsubscribes: 1 }]);
  await client.request({ method: 'DELETE', url: `/v3/asm/groups/${id}/suppressions/bob@there.invalid` });
  t.deepEqual(await lists(world), []);
  await t.throwsAsync(mailer.send({ ...base, subject: 'x', asm: { groupId: 1 } }), {
    message: /Bad Request/,
  });
});

test('Mailgun: a tag that names a stream is the stream, and people unsubscribe from it', async (t) => {
  const world = await start();
  await makeStream(world.db, { orgId: world.orgId, name: 'news', kind: 'subscribed' }, 0);
  await new Promise((resolve) => setTimeout(resolve, 1100));
  // biome-ignore lint/suspicious/noExplicitAny: the package's type of its default export is that of its CommonJS form
  const client = new (Mailgun as any)(FormData).client({ username: 'api', key: world.key, url: world.url() });
  const send = async (tags: string[]) => {
    const fields = { from: 'app@sender.invalid', to: 'ann@there.invalid', text: 'Hi', subject: tags.join() };
    const { id } = await client.messages.create('sender.invalid', { ...fields, 'o:tag': tags });
    const row = await world
      .db('emails')
      .where({ message_id: id!.replace(/[<>]/g, '') })
      .first('stream');
    return row.stream;
  };
  t.is(await send(['summer', 'news']), 'news');
  t.is(await send(['summer']), null);
  const list = 'unsubscribes';
  await client.suppressions.create('sender.invalid', list, { address: 'ann@there.invalid', tag: 'news' });
  await client.suppressions.create('sender.invalid', list, [
    { address: 'bob@there.invalid', tags: ['news'] },
    { address: 'cleo@there.invalid' },
  ]);
  t.deepEqual(await lists(world), [
    'news:ann@there.invalid',
    'news:bob@there.invalid',
    ':cleo@there.invalid',
  ]);
});

test('Mailgun: an address is one item with all its tags, and is taken off one of them or off all', async (t) => {
  const world = await start();
  for (const name of ['news', 'tips'])
    await makeStream(world.db, { orgId: world.orgId, name, kind: 'subscribed' }, 0);
  await new Promise((resolve) => setTimeout(resolve, 1100));
  const path = '/v3/sender.invalid/unsubscribes';
  const call = async (method: string, more = '', body?: string | URLSearchParams) => {
    const authorization = `Basic ${Buffer.from(`api:${world.key}`).toString('base64')}`;
    const isJson = typeof body === 'string';
    const headers = { authorization, ...(isJson && { 'content-type': 'application/json' }) };
    const response = await fetch(world.url() + path + more, { method, headers, ...(body && { body }) });
    // biome-ignore lint/suspicious/noExplicitAny: the answer of a service, as its documents say it
    return { status: response.status, body: (await response.json()) as any };
  };
  const ann = '/ann@there.invalid';
  const several = [
    { address: 'ann@there.invalid', tags: ['summer', 'news', 'tips'] },
    { address: 'bob@there.invalid', tags: ['news', '*'] },
  ];
  t.is((await call('POST', '', JSON.stringify(several))).status, 200);
  const form = new URLSearchParams([
    ['address', 'cleo@there.invalid'],
    ['tag', 'tips'],
    ['tag', 'news'],
  ]);
  t.is((await call('POST', '', form)).status, 200);
  const page = async (query: string) =>
    (await call('GET', `?${query}`)).body.items.map(
      ({ address, tags }: { address: string; tags: string[] }) =>
        `${address.split('@')[0]} ${tags.toSorted()}`,
    );
  t.deepEqual(await page('limit=2'), ['ann news,tips', 'bob *']);
  t.deepEqual(await page('limit=2&page=next&address=bob@there.invalid'), ['cleo news,tips']);
  t.deepEqual(await page('limit=2&page=last'), ['bob *', 'cleo news,tips']);
  t.deepEqual((await call('GET', `${ann}?tag=tips`)).body.tags, ['tips']);
  t.is((await call('DELETE', '/bob@there.invalid?tag=summer')).status, 404, 'not the entry of all mail');
  t.is((await call('DELETE', `${ann}?tag=tips`)).status, 200);
  t.deepEqual((await call('GET', ann)).body.tags, ['news']);
  t.is((await call('DELETE', '/cleo@there.invalid')).status, 200);
  t.deepEqual(await lists(world), ['news:ann@there.invalid', ':bob@there.invalid']);
});

test('Resend: a topic is the stream of its name', async (t) => {
  const world = await start();
  await makeStream(world.db, { orgId: world.orgId, name: 'news', kind: 'subscribed' }, 0);
  const client = new Resend(world.key, { baseUrl: world.url() });
  const fields = { from: 'app@sender.invalid', to: 'ann@there.invalid', subject: 'Hi', text: 'Hi' };
  const { data } = await client.emails.send({ ...fields, topicId: 'news' });
  t.is((await world.get(data!.id)).stream, 'news');
  const { error } = await client.emails.send({ ...fields, topicId: 'none-such' });
  t.regex(error!.message, /no stream "none-such"/);
});

test('SendGrid: a group’s number in the wrong place is named, as is all that nothing reads', async (t) => {
  const world = await start();
  await makeStream(world.db, { orgId: world.orgId, name: 'news', kind: 'subscribed' }, 0);
  const send = (fields: object, personalization: object = {}) =>
    fetch(`${world.url()}/v3/mail/send`, {
      method: 'POST',
      headers: { authorization: `Bearer ${world.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        personalizations: [{ to: [{ email: 'ann@there.invalid' }], ...personalization }],
        from: { email: 'app@sender.invalid' },
        subject: 'Hi',
        content: [{ type: 'text/plain', value: 'Hi' }],
        ...fields,
      }),
    });
  const ignored = async (...fields: [object, object?]) => {
    const response = await send(...fields);
    t.is(response.status, 202);
    return response.headers.get('x-postern-ignored');
  };
  const id = streamNumber('news');
  t.is(await ignored({ asm: { group_id: id } }), null);
  t.is(await ignored({ asm_group_id: id }), 'asm_group_id');
  t.is(await ignored({ group_id: id, ip_pool_name: 'a' }), 'group_id, ip_pool_name');
  t.is(await ignored({}, { asm: { group_id: id } }), 'personalizations.0.asm');
  t.is(await ignored({ asm: { group_id: id, id } }), 'asm.id');
  t.true((await ignored({ ['x'.repeat(5_000)]: 1 }))!.length < 100);
});
