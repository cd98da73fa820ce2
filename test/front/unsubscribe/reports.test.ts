/**
 * What people reported of unsubscribing, suppressions and Feedback-ID elsewhere, tried here over real sockets:
 * listmonk#3063, useSend#412, emailflare#190, listmonk#1161, mautic#2781 and hmailserver#492, mozilla/fxa#18462,
 * sendgrid-nodejs#1401, sendgrid-php#944, sympa#1538.
 */

import sendgridClient from '@sendgrid/client';
import test from 'ava';
import { makeStream } from '#accounts/manage-streams.ts';
import { worldOfFile } from '#lab/scenes/shared-world.ts';
import { asNewTenant, type World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { streamNumber } from '#platform/values/stream.ts';

const shared = worldOfFile();

async function start(): Promise<World> {
  const world = await asNewTenant(shared());
  const stream = { orgId: world.orgId, kind: 'subscribed' } as const;
  await makeStream(world.db, { ...stream, name: 'news' }, 0);
  return world;
}

/** The header of a mail as it arrived, unfolded. */
async function headOf(world: World, to: string, fields: object = {}): Promise<string> {
  const { status, body } = await world.send({ to, subject: String(Math.random()), ...fields });
  if (status !== 200) throw new Error(JSON.stringify(body));
  const { raw } = await until(() =>
    world.mx[0]!.messages.find((one) => one.to.includes(to) && one.raw.includes(body.id)),
  );
  return raw
    .toString('latin1')
    .split('\r\n\r\n', 1)[0]!
    .replace(/\r\n[ \t]+/g, ' ');
}

async function linkOf(world: World, to: string): Promise<string> {
  const head = await headOf(world, to, { stream: 'news' });
  return world.url() + new URL(/<(https?:[^>]+)>/.exec(head)![1]!).pathname;
}

const press = (link: string, headers: Record<string, string> = {}) =>
  fetch(link, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    body: 'List-Unsubscribe=One-Click',
  });

const isLeft = async ({ db, orgId }: World, to: string) =>
  (await db('suppressions').where({ org_id: orgId, address: to })).length === 1;

test('listmonk#3063: an answer that says “unsubscribed” is true, also for an address that never confirmed', async (t) => {
  const world = await start();
  const to = `new-${world.orgId}@there.invalid`;
  const response = await press(await linkOf(world, to));
  t.regex(await response.text(), /You are unsubscribed from news/);
  t.true(await isLeft(world, to));
});

test('useSend#412: gateways that fetch every link, again and again, unsubscribe nobody', async (t) => {
  const world = await start();
  const to = `scanned-${world.orgId}@there.invalid`;
  const link = await linkOf(world, to);
  for (const headers of [
    { 'sec-purpose': 'prefetch' },
    { 'user-agent': 'Mozilla/5.0 (compatible; Microsoft Defender SafeLinks)' },
    { accept: '*/*', range: 'bytes=0-0' },
  ] as Record<string, string>[])
    for (const method of ['GET', 'HEAD']) t.true((await fetch(link, { method, headers })).ok);
  t.is((await fetch(link, { method: 'OPTIONS' })).status < 500, true);
  t.is((await fetch(`${link}?from=page&List-Unsubscribe=One-Click`)).status, 200);
  t.false(await isLeft(world, to));
});

test('emailflare#190: a fetched link still works, and leaving the news stops no password mail', async (t) => {
  const world = await start();
  const to = `kept-${world.orgId}@there.invalid`;
  const link = await linkOf(world, to);
  for (let n = 0; n < 5; n += 1) await fetch(link);
  t.is((await press(link)).status, 200);
  t.is((await press(link)).status, 200, 'twice is once');
  t.is((await world.send({ to, subject: 'More news', stream: 'news' })).status, 422);
  t.is((await world.send({ to, subject: 'Your new password' })).status, 200);
});

test('listmonk#1161: one click needs an https link, so a mailto with List-Unsubscribe-Post is warned of', async (t) => {
  const world = await start();
  const headers = {
    'List-Id': '<news.acme.invalid>',
    'List-Unsubscribe': '<mailto:off@acme.invalid?subject=Unsubscribe>',
    'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
  };
  const sent = await world.send({ to: 'ann@there.invalid', subject: 'News', headers });
  t.is(sent.status, 200);
  t.regex(sent.headers.get('x-postern-warning')!, /https link/);
});

test('mautic#2781, hmailserver#492, fxa#18462: Feedback-ID is there, signed, and tells kinds of mail apart', async (t) => {
  const world = await start();
  const idIn = (head: string) => /^Feedback-ID: (.*)$/im.exec(head)![1]!;
  const head = await headOf(world, `a-${world.orgId}@there.invalid`, { tags: { tag: 'login-code' } });
  const other = await headOf(world, `b-${world.orgId}@there.invalid`, { tags: { tag: 'digest' } });
  t.regex(/^DKIM-Signature:.*?\bh=([^;]+)/im.exec(head)![1]!, /\bFeedback-ID\b/i);
  const [one, two] = [head, other].map((some) => idIn(some).split(':'));
  t.deepEqual([one![0], two![0]], ['tag-login-code', 'tag-digest']);
  t.deepEqual(one!.slice(1), two!.slice(1), 'the rest stays the same');
});

function sendgridOf(world: World) {
  const client = new (sendgridClient.constructor as new () => typeof sendgridClient)();
  client.setApiKey(`SG.${world.key}`);
  client.setDefaultHeader('Authorization', `Bearer ${world.key}`);
  client.setDefaultRequest('baseUrl', `${world.url()}/`);
  return (method: 'GET' | 'POST' | 'DELETE', url: string, body?: object) =>
    client
      .request({ method, url, ...(body && { body }) })
      .then(([{ statusCode, body: answer }]) => ({ statusCode, answer: answer as Record<string, unknown> }))
      .catch((error) => ({ statusCode: error.code as number, answer: error.response.body }));
}

test('sendgrid-nodejs#1401: an address is taken off the global list by the SDK, and gets mail again', async (t) => {
  const world = await start();
  const ask = sendgridOf(world);
  const to = 'back@there.invalid';
  await ask('POST', '/v3/asm/suppressions/global', { recipient_emails: [to] });
  t.is((await world.send({ to, subject: 'No' })).status, 422);
  t.deepEqual((await ask('GET', `/v3/asm/suppressions/global/${to}`)).answer, { recipient_email: to });
  t.is((await ask('DELETE', `/v3/asm/suppressions/global/${to}`)).statusCode, 204);
  t.deepEqual((await ask('GET', `/v3/asm/suppressions/global/${to}`)).answer, {});
  t.is((await world.send({ to, subject: 'Yes' })).status, 200);
});

test('sendgrid-php#944: a group is named by its number; its name there is no group, and takes nobody off', async (t) => {
  const world = await start();
  const ask = sendgridOf(world);
  const [to, group] = ['left@there.invalid', `/v3/asm/groups/${streamNumber('news')}/suppressions`];
  t.is((await ask('POST', group, { recipient_emails: [to] })).statusCode, 201);
  const byName = await ask('DELETE', `/v3/asm/groups/news/suppressions/${to}`);
  t.is(byName.statusCode, 404);
  t.regex(JSON.stringify(byName.answer), /group/);
  t.true(await isLeft(world, to));
  t.is((await ask('DELETE', `${group}/${to}`)).statusCode, 204);
  t.false(await isLeft(world, to));
});

test('sympa#1538: the link of a mail of months ago still works', async (t) => {
  const world = await start();
  const to = `old-${world.orgId}@there.invalid`;
  const link = await linkOf(world, to);
  await world.clock.advance('200d');
  t.is((await press(link)).status, 200);
  t.true(await isLeft(world, to));
});
