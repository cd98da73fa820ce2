/** What all dialects have in common, in each service's own form: what is kept, refused and left out. */
import test from 'ava';
import { suppressAddress } from '#accounts/suppression-list.ts';
import { createBrowser, setUp } from '#lab/browser/browser.ts';
import { cliOf } from '#lab/cli.ts';
import { asNewTenant, startWorld, type World } from '#lab/scenes/world.ts';
import { type DialectName, dialectNames } from '#platform/values/glossary.ts';

interface Mail {
  to: string | string[];
  text?: string;
}

const from = 'app@sender.invalid';
const subject = 'Hi';
const json = (path: string, key: (key: string) => Record<string, string>, body: (mail: Mail) => object) => ({
  path,
  headers: (given: string) => ({ ...key(given), 'content-type': 'application/json' }),
  body: (mail: Mail) => JSON.stringify(body(mail)),
});
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

/** One email through each of them. */
const requests = {
  resend: json('/emails', bearer, (mail) => ({ from, subject, ...mail })),
  postmark: json(
    '/email',
    (key) => ({ 'x-postmark-server-token': key }),
    ({ to, text }) => ({ From: from, To: [to].flat().join(), Subject: subject, TextBody: text }),
  ),
  sendgrid: json('/v3/mail/send', bearer, ({ to, text: value }) => ({
    personalizations: [{ to: [to].flat().map((email) => ({ email })) }],
    from: { email: from },
    subject,
    content: [{ type: 'text/plain', value }],
  })),
  mailgun: {
    path: '/v3/sender.invalid/messages',
    headers: (key: string) => ({ authorization: `Basic ${Buffer.from(`api:${key}`).toString('base64')}` }),
    body: ({ to, text = '' }: Mail) => new URLSearchParams({ from, subject, to: [to].flat().join(), text }),
  },
} satisfies Record<DialectName, object>;

async function send(world: World, name: DialectName, mail: Mail, headers = {}) {
  const { path, body, headers: own } = requests[name];
  const response = await fetch(`${world.url()}${path}`, {
    method: 'POST',
    headers: { ...own(world.key), ...headers },
    body: body({ text: 'Hi', ...mail }),
  });
  const text = await response.text();
  return { status: response.status, body: /^[{[]/.test(text) ? JSON.parse(text) : text };
}

test('an email is shown in the dialect that it was sent through', async (t) => {
  const world = await startWorld(t);
  const browser = createBrowser(world);
  await setUp(browser, world);
  const { cli } = cliOf(t, world);
  const own = (await world.send({ to: 'own@there.invalid' })).body.emailId;
  t.false('dialect' in (await world.get(own)));
  const page = async (id: string) => (await browser.get(`/dashboard/o/${world.orgId}/emails/${id}`)).text;
  t.notRegex(await page(own), /Sent through/);
  for (const name of dialectNames) {
    await send(world, name, { to: `${name}@there.invalid` });
    const { email_id: id } = await world
      .db('deliveries')
      .where({ recipient: `${name}@there.invalid` })
      .first('email_id');
    t.is((await world.get(id)).dialect, name);
    t.regex(await page(id), new RegExp(`Sent through\\s+the API of ${name}`, 'i'));
    t.regex((await cli(`email show ${id}`)).stdout.toString(), new RegExp(`dialect\\t${name}`));
  }
});

test('an Idempotency-Key that comes with another body is a conflict, in the form of the dialect', async (t) => {
  const world = await startWorld(t);
  const words = 'This idempotency key was used for a different request';
  const bodies: Record<DialectName, string> = {
    resend: `{"statusCode":409,"name":"invalid_idempotent_request","message":"${words}`,
    postmark: `{"ErrorCode":300,"Message":"${words}`,
    sendgrid: `{"errors":[{"message":"${words}`,
    mailgun: `{"message":"${words}`,
  };
  for (const name of dialectNames) {
    const sent = (text: string) =>
      send(world, name, { to: 'ann@there.invalid', text }, { 'idempotency-key': `once ${name}` });
    const first = await sent('One');
    const again = await sent('One');
    t.deepEqual([first.status, again.status], name === 'sendgrid' ? [202, 202] : [200, 200]);
    const other = await sent('Two');
    t.is(other.status, 409, name);
    t.true(JSON.stringify(other.body).startsWith(bodies[name]), name);
  }
  t.is((await world.db('emails')).length, dialectNames.length);
});

test('a refusal says what is wrong in words that fit the dialect', async (t) => {
  const world = await startWorld(t);
  const limited = await asNewTenant(world);
  await world.db('organizations').where({ id: limited.orgId }).update({ requests_per_day: 1 });
  const without = await asNewTenant(world);
  await world.db('domains').where({ org_id: without.orgId }).delete();
  const pending = await asNewTenant(world);
  await world.db('domains').where({ org_id: pending.orgId }).update({ status: 'pending' });
  const full = await asNewTenant(world);
  await world.db('organizations').where({ id: full.orgId }).update({ emails_per_day: 0 });
  const ann = 'ann@there.invalid';
  const many = Array.from({ length: 1001 }, (_, n) => `a${n}@there.invalid`);
  const bodies: Record<DialectName, string> = {
    resend: 'html or text',
    postmark: 'HtmlBody or TextBody',
    sendgrid: 'content.0.value',
    mailgun: 'html or text',
  };
  const manyWords: Record<DialectName, RegExp> = {
    resend: /at most 50 recipients; this one has 1001/,
    postmark: /^To can have at most 50 addresses/,
    sendgrid: /at most 1000 recipients/,
    mailgun: /at most 1000 recipients; this one has 1001/,
  };
  for (const name of dialectNames) {
    const said = async (on: World, mail: Partial<Mail> = {}) =>
      messageIn((await send(on, name, { to: ann, ...mail })).body);
    const foreign = await said({ ...world, key: 're_4711' });
    if (name === 'mailgun') t.is(foreign, 'Forbidden');
    else t.regex(foreign, /start with em_/);
    t.regex(await said(without), /sender\.invalid is not registered/, name);
    t.regex(await said(pending), /not verified yet\. Publish its DKIM record/, name);
    t.regex(await said(world, { text: '' }), new RegExp(`^${bodies[name]}.* must`));
    t.regex(await said(world, { to: many }), manyWords[name]);
    t.regex(await said(full), /limit of 0 recipients a day, counted from 00:00 UTC/);
  }
  await send(limited, 'resend', { to: ann });
  for (const name of dialectNames)
    t.regex(
      messageIn((await send(limited, name, { to: ann })).body),
      /may make 1 request a day; wait for the next/,
    );
});

/** Where the SDKs look for it. */
function messageIn(body: { message?: string; Message?: string; errors?: { message: string }[] } | string) {
  if (typeof body === 'string') return body;
  return (body.message ?? body.Message ?? body.errors?.[0]?.message)!;
}

test('what only suppressed recipients would get is kept with its events and costs nothing; Postmark refuses it', async (t) => {
  const world = await startWorld(t, { tenant: { quota: 1 } });
  const change = { db: world.db, orgId: world.orgId, now: world.clock.now() };
  await suppressAddress(change, 'gone@there.invalid');
  const answers = [];
  for (const name of dialectNames) answers.push(await send(world, name, { to: 'gone@there.invalid' }));
  t.deepEqual(
    answers.map(({ status }) => status),
    [200, 422, 202, 200],
  );
  t.is(answers[1]!.body.ErrorCode, 406);
  t.is((await world.db('emails')).length, 3);
  t.deepEqual(
    await world.db('events').where('type', 'like', 'email.%').pluck('type'),
    Array(3).fill('email.suppressed'),
  );
  t.like(await world.get(answers[0]!.body.id), { status: 'suppressed', credits: 0 });
  t.is((await world.db('messages')).length, 0);
  const { cli } = cliOf(t, world);
  for (const command of ['show', 'why']) t.is((await cli(`email ${command} ${answers[0]!.body.id}`)).code, 0);
  const browser = createBrowser(world);
  await setUp(browser, world);
  const page = await browser.get(`/dashboard/o/${world.orgId}/emails/${answers[0]!.body.id}`);
  t.deepEqual([page.status, /suppressed/i.test(page.text)], [200, true]);
  t.is((await world.send({ to: 'ann@there.invalid' })).status, 200, 'the credit is still there');
  // Without credits, too.
  t.is((await send(world, 'resend', { to: 'gone@there.invalid' })).status, 200);
  t.is((await send(world, 'resend', { to: 'ann@there.invalid' })).status, 429);
});
