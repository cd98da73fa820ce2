/** SendGrid's official SDKs against a real server: one email or a thousand, and what is suppressed. */
import sendgridClient from '@sendgrid/client';
import sendgridMail from '@sendgrid/mail';
import test from 'ava';
import PostalMime from 'postal-mime';
import { addSuppression, suppressionOf } from '#accounts/rows/suppressions.ts';
import { areSigned } from '#lab/dkim.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';

// The types of these packages know the instance that they export, and not its class beside it.
const Client = sendgridClient.constructor as new () => typeof sendgridClient;
const MailService = sendgridMail.constructor as new () => typeof sendgridMail;

interface Failure {
  code: number;
  response: {
    headers: Record<string, string>;
    body: { errors: { message: string; field: string | null; help: null }[] };
  };
}

function clientOf(world: World, key = world.key, path = '') {
  const client = new Client();
  // It resets the URL, and warns of keys that are not SendGrid's own.
  client.setApiKey(`SG.${key}`);
  client.setDefaultHeader('Authorization', `Bearer ${key}`);
  client.setDefaultRequest('baseUrl', `${world.url()}${path}`);
  return client;
}

function mailerOf(world: World, key?: string, path?: string) {
  const mailer = new MailService();
  mailer.setClient(clientOf(world, key, path));
  return mailer;
}

const mail = { from: 'app@sender.invalid', to: 'ann@there.invalid', subject: 'Hi', text: 'Hi' };
const failureOf = (call: Promise<unknown>) =>
  call.then(
    () => null,
    (error) => error as Failure,
  );

test('SendGrid: what the SDK sends arrives, signed, with every field', async (t) => {
  const world = await startWorld(t);
  const [answer, body] = await mailerOf(world).send({
    from: { email: 'app@sender.invalid', name: 'Acme, Inc.' },
    to: [{ email: 'ann@there.invalid', name: 'Ann "A" Bee' }, 'bob@there.invalid'],
    cc: 'cleo@there.invalid',
    bcc: ['dora@there.invalid'],
    replyToList: [{ email: 'help@sender.invalid', name: 'Help' }, { email: 'desk@sender.invalid' }],
    subject: 'Grüße',
    text: 'Hi',
    html: '<p>Hi <img src="cid:logo"></p>',
    headers: { 'X-Entity-Ref-ID': '7' },
    categories: ['receipt', 'paid'],
    customArgs: { order: '4711' },
    attachments: [
      {
        filename: 'logo.png',
        content: Buffer.from('png').toString('base64'),
        type: 'image/png',
        disposition: 'inline',
        contentId: 'logo',
      },
    ],
    trackingSettings: { openTracking: { enable: false }, clickTracking: { enable: false } },
  } as never);
  t.deepEqual([answer.statusCode, body], [202, '' as never]);
  const id = answer.headers['x-message-id'];
  await world.when(id, ({ status }) => status === 'delivered');
  const messages = world.mx[0]!.messages;
  t.is(messages.length, 4);
  const { raw } = messages.find(({ to }) => to[0]!.startsWith('dora'))!;
  await areSigned(t, world);
  const arrived = await PostalMime.parse(raw);
  t.deepEqual(arrived.from, { name: 'Acme, Inc.', address: 'app@sender.invalid' });
  t.deepEqual(arrived.to, [
    { name: 'Ann "A" Bee', address: 'ann@there.invalid' },
    { name: '', address: 'bob@there.invalid' },
  ]);
  t.deepEqual(arrived.replyTo, [
    { name: 'Help', address: 'help@sender.invalid' },
    { name: '', address: 'desk@sender.invalid' },
  ]);
  t.is(arrived.subject, 'Grüße');
  t.is(arrived.headers.find(({ key }) => key === 'x-entity-ref-id')!.value, '7');
  t.like(arrived.attachments[0]!, { contentId: '<logo>', disposition: 'inline', mimeType: 'image/png' });
  t.false(raw.includes('dora@'), 'bcc is in no header');
  const [email] = await world.db('emails');
  t.deepEqual(JSON.parse(email!.tags), { order: '4711', tag: 'receipt,paid' });
});

test('SendGrid: each personalization is an email of its own, with its substitutions', async (t) => {
  const world = await startWorld(t);
  const [answer] = await mailerOf(world, world.key, '/compat/sendgrid/').send({
    from: 'app@sender.invalid',
    subject: 'For {{name}}',
    html: '<p>{{name}} owes {{sum}}; {{sum}} $& {{nothing}}</p>',
    text: '{{name}}: {{sum}}',
    headers: { 'X-Kind': 'all', 'X-Other': 'kept' },
    customArgs: { order: '1', plan: 'pro' },
    personalizations: [
      { to: 'ann@there.invalid', substitutions: { name: 'Ann', sum: '$& {{name}}' } },
      {
        to: 'bob@there.invalid',
        subject: 'Only {{name}}',
        headers: { 'x-kind': 'own' },
        customArgs: { order: '2' },
        substitutions: { name: 'Bob', sum: '3' },
      },
    ],
  } as never);
  t.is(answer.statusCode, 202);
  const emails = await world.db('emails').orderBy('id');
  t.is(emails.length, 2);
  t.is(emails[0]!.id, answer.headers['x-message-id']);
  t.deepEqual(JSON.parse(emails[1]!.tags), { order: '2', plan: 'pro' });
  for (const { id } of emails) await world.when(id, ({ status }) => status === 'delivered');
  const arrived = await Promise.all(
    ['ann', 'bob'].map((name) =>
      PostalMime.parse(world.mx[0]!.messages.find(({ to }) => to[0]!.startsWith(name))!.raw),
    ),
  );
  t.deepEqual(
    arrived.map(({ subject, text, to }) => [subject, text!.trim(), to!.length]),
    [
      ['For Ann', 'Ann: $& {{name}}', 1],
      ['Only Bob', 'Bob: 3', 1],
    ],
  );
  await areSigned(t, world);
  t.true(arrived[0]!.html!.includes('Ann owes $& {{name}}; $& {{name}} $& {{nothing}}'));
  const kinds = arrived.map(({ headers }) =>
    headers.filter(({ key }) => key === 'x-kind' || key === 'x-other').map(({ value }) => value),
  );
  t.deepEqual(
    kinds.map((values) => values.sort()),
    [
      ['all', 'kept'],
      ['kept', 'own'],
    ],
  );
});

test('SendGrid: many personalizations are as many emails, of which those to suppressed addresses are dropped; a repeat adds none', async (t) => {
  const world = await startWorld(t);
  const client = clientOf(world);
  await client.request({
    method: 'POST',
    url: '/v3/asm/suppressions/global',
    body: { recipient_emails: ['n7@there.invalid'] },
  });
  const many = {
    ...mail,
    to: Array.from({ length: 200 }, (_, n) => ({ email: `n${n}@there.invalid`, name: `N ${n}` })),
    // Scheduled, so that they are stored and nothing else.
    sendAt: Math.floor(world.clock.now() / 1000) + 3600,
    // More members in all than a send of our own can have.
    substitutions: Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`name${n}`, `value ${n}`])),
    headers: {},
  };
  client.setDefaultHeader('Idempotency-Key', 'once');
  const mailer = new MailService();
  mailer.setClient(client);
  for (let time = 0; time < 2; time += 1) {
    const [answer] = await mailer.sendMultiple(many as never);
    t.is(answer.statusCode, 202);
    t.is((await world.db('emails')).length, 200);
  }
  const charged = await world.db('credit_entries').where('change', '<', 0);
  t.is(charged.length, 199);
  const [alone] = await mailerOf(world).send({
    ...mail,
    html: '<p>Hi <a href="https://shop.invalid/">shop</a></p>',
    to: ['n7@there.invalid', 'N7@there.invalid'],
    bcc: 'n7@there.invalid',
    trackingSettings: { openTracking: { enable: true } },
  });
  t.is(alone.statusCode, 202);
  const dropped = await world.get(alone.headers['x-message-id']);
  t.like(dropped, { status: 'suppressed', credits: 0 });
  t.deepEqual(
    dropped.events.map(({ type }: { type: string }) => type),
    ['email.suppressed'],
  );
  const { emailId } = dropped;
  for (const table of ['messages', 'message_bases', 'credit_entries'])
    t.is((await world.db(table).where({ email_id: emailId })).length, 0, table);
});

test('SendGrid: a sandboxed send is checked and not sent; a scheduled one waits', async (t) => {
  const world = await startWorld(t);
  const mailer = mailerOf(world);
  const mailSettings = { sandboxMode: { enable: true } };
  const [answer] = await mailer.send({ ...mail, mailSettings });
  t.is(answer.statusCode, 200);
  const refused = await failureOf(mailer.send({ ...mail, from: 'app@other.invalid', mailSettings }));
  t.is(refused!.code, 403);
  t.is((await world.db('emails')).length, 0);
  t.is((await world.db('credit_entries').where('change', '<', 0)).length, 0);

  const sendAt = Math.floor(world.clock.now() / 1000) + 600;
  const [later] = await mailer.send({ ...mail, sendAt });
  const id = later.headers['x-message-id'];
  const [email] = await world.db('emails');
  t.deepEqual([email!.id, Number(email!.scheduled_at)], [id, sendAt * 1000]);
  const [past] = await mailer.send({ ...mail, sendAt: 1 });
  await world.when(past.headers['x-message-id'], ({ status }) => status === 'delivered');
});

test('SendGrid: a refused call says which field is wrong, and sends and charges nothing', async (t) => {
  const world = await startWorld(t);
  const client = clientOf(world);
  const content = [{ type: 'text/plain', value: 'Hi' }];
  const to = [{ email: 'ann@there.invalid' }];
  const body = { personalizations: [{ to }], from: { email: 'app@sender.invalid' }, subject: 'Hi', content };
  const refused = async (change: object) => {
    const failure = await failureOf(
      client.request({ method: 'POST', url: '/v3/mail/send', body: { ...body, ...change } }),
    );
    const [error] = failure!.response.body.errors;
    t.deepEqual(Object.keys(error!), ['message', 'field', 'help']);
    return [failure!.code, error!.field, error!.message];
  };
  const second = (one: object) => ({ personalizations: [{ to }, { to, ...one }] });
  const inDays = (days: number) => Math.floor(world.clock.now() / 1000) + days * 86_400;
  const file = { filename: 'a.png', content: 'aGk=', content_id: 'logo' };
  const wrong: [object, number, string | null][] = [
    [{ personalizations: undefined }, 400, 'personalizations'],
    [{ personalizations: [] }, 400, 'personalizations'],
    [{ personalizations: [{}] }, 400, 'personalizations.0.to'],
    [second({ to: [{ email: 'ann' }] }), 400, 'personalizations.1.to.0.email'],
    [{ personalizations: Array.from({ length: 1001 }, () => ({ to })) }, 400, 'personalizations'],
    [{ personalizations: [{ to: Array.from({ length: 1001 }, () => to[0]) }] }, 400, 'personalizations'],
    [{ from: undefined }, 400, 'from'],
    [{ from: { email: 'app@other.invalid' } }, 403, 'from'],
    [second({ from: { email: 'app@other.invalid' } }), 400, 'personalizations.1.from'],
    [{ subject: undefined }, 400, 'subject'],
    [second({ subject: 'a\r\nBcc: x@there.invalid' }), 400, 'personalizations.1.subject'],
    [{ content: [] }, 400, 'content'],
    [{ content: [{ type: 'text/xml', value: 'x' }] }, 400, 'content.0.type'],
    [{ content: [...content, ...content] }, 400, 'content'],
    [second({ headers: { 'Bad Name': 'x' } }), 400, 'personalizations.1.headers.Bad Name'],
    [{ attachments: [{ filename: 'a.txt', content: '!' }] }, 400, 'attachments.0.content'],
    [{ attachments: [file, file] }, 400, 'attachments.1.content_id'],
    [{ reply_to: { email: 'nobody' } }, 400, 'reply_to.email'],
    [{ send_at: inDays(60) }, 400, 'send_at'],
    [second({ send_at: inDays(60) }), 400, 'personalizations.1.send_at'],
    [{ categories: ['a'], custom_args: { tag: 'b' } }, 400, 'custom_args.tag'],
    [{ template_id: 'd-1' }, 400, 'template_id'],
    [{ asm: { group_id: 1 } }, 400, 'asm'],
    [{ batch_id: 'b' }, 400, 'batch_id'],
    [
      { tracking_settings: { subscription_tracking: { enable: true } } },
      400,
      'tracking_settings.subscription_tracking',
    ],
    [second({ substitutions: { x: 'y'.repeat(10_001) } }), 400, 'personalizations.1.substitutions'],
    [
      {
        content: [{ type: 'text/plain', value: 'x'.repeat(1000) }],
        ...second({ substitutions: { x: 'y'.repeat(9000) } }),
      },
      400,
      null,
    ],
  ];
  for (const [change, status, field] of wrong)
    t.deepEqual((await refused(change)).slice(0, 2), [status, field], JSON.stringify(change).slice(0, 200));
  // sendgrid/sendgrid-nodejs#1038
  t.regex(String((await refused({ send_at: 1000 * inDays(1) }))[2]), /seconds, not in milliseconds$/);
  t.is((await world.db('emails')).length, 0);
  t.is((await world.db('credit_entries').where('change', '<', 0)).length, 0);
});

test('SendGrid: when the credits end in the middle, the error says how many were accepted', async (t) => {
  const world = await startWorld(t, { tenant: { quota: 2 } });
  const to = ['ann', 'bob', 'cleo'].map((name) => `${name}@there.invalid`);
  const failure = await failureOf(mailerOf(world).sendMultiple({ ...mail, to }));
  t.is(failure!.code, 401);
  t.regex(failure!.response.body.errors[0]!.message, /2 of 3 personalizations were accepted/);
  t.is((await world.db('emails')).length, 2);
});

test('SendGrid: errors of keys, paths and sizes have the form that the SDKs read', async (t) => {
  const world = await startWorld(t);
  const wrong = await failureOf(mailerOf(world, 'em_wrong').send({ ...mail }));
  t.is(wrong!.code, 401);
  t.is(wrong!.response.body.errors.length, 1);
  const missing = await failureOf(clientOf(world).request({ method: 'GET', url: '/v3/templates/x' }));
  t.is(missing!.code, 404);
  t.regex(missing!.response.body.errors[0]!.message, /GET \/v3\/templates\/x/);
  const large = await failureOf(mailerOf(world).send({ ...mail, text: 'x'.repeat(21 * 1024 * 1024) }));
  t.is(large!.code, 413);
  const broken = await fetch(`${world.url()}/v3/mail/send`, {
    method: 'POST',
    headers: { authorization: `Bearer ${world.key}`, 'content-type': 'application/json' },
    body: '{',
  });
  t.is(broken.status, 400);
  t.like(await broken.json(), { errors: [{ field: null }] });

  await world.db('organizations').update({ emails_per_day: 1 });
  // A copy, because the SDK notes in the object that it is not for several, which another test would then send.
  await mailerOf(world).send({ ...mail });
  const limited = await failureOf(mailerOf(world).send({ ...mail, subject: 'Second' }));
  t.is(limited!.code, 429);
  const { headers } = limited!.response;
  const waits = Number(headers['x-ratelimit-reset']) - Date.now() / 1000;
  t.true(Math.abs(waits - Number(headers['retry-after'])) < 120, JSON.stringify(headers));
});

test('SendGrid: bounces and global suppressions are looked up, added and removed', async (t) => {
  const world = await startWorld(t);
  const client = clientOf(world);
  const ask = async (method: 'GET' | 'POST' | 'DELETE', path: string, body?: object) => {
    const [answer, parsed] = await client.request({ method, url: `/v3/${path}`, ...(body && { body }) });
    return [answer.statusCode, parsed];
  };
  const bounces = 'suppression/bounces';
  const global = 'asm/suppressions/global';
  const [answer] = await mailerOf(world).sendMultiple({
    ...mail,
    to: ['unknown@there.invalid', 'unknown+2@there.invalid'],
  });
  t.is(answer.statusCode, 202);
  for (const { id } of await world.db('emails')) await world.when(id, ({ status }) => status === 'bounced');
  t.deepEqual(await ask('POST', global, { recipient_emails: ['Ann@there.invalid'] }), [
    201,
    { recipient_emails: ['Ann@there.invalid'] },
  ]);
  const [status, list] = await ask('GET', bounces);
  t.is(status, 200);
  t.like(list, [
    { email: 'unknown+2@there.invalid', status: '5.1.1' },
    { email: 'unknown@there.invalid', status: '5.1.1' },
  ]);
  // What no address can be is on no list, also on PostgreSQL.
  t.deepEqual(await ask('GET', `${global}/%00%F0%B3%91%BA`), [200, {}]);
  t.is((await ask('DELETE', `${global}/%00%F0%B3%91%BA`))[0], 204);
  const pages = [`limit=1&offset=1`, `start_time=${list[0].created + 60}`, 'end_time=1'];
  const found = [];
  for (const page of pages) found.push((await ask('GET', `${bounces}?${page}`))[1].length);
  t.deepEqual(found, [1, 0, 0]);
  t.deepEqual(await ask('GET', `${bounces}/unknown%40there.invalid`), [200, [list[1]]]);
  t.deepEqual(await ask('GET', `${bounces}/ann@there.invalid`), [200, []]);
  t.deepEqual(await ask('GET', `${global}/ann@there.invalid`), [
    200,
    { recipient_email: 'Ann@there.invalid' },
  ]);
  t.deepEqual(await ask('GET', `${global}/bob@there.invalid`), [200, {}]);

  await addSuppression(world.db, suppressionOf(world.orgId, 'dora@there.invalid', 'complaint'), 5000);
  const complaint = { created: 5, email: 'dora@there.invalid', ip: '' };
  for (const [name, emails] of Object.entries({
    spam_reports: ['dora@there.invalid'],
    unsubscribes: ['Ann@there.invalid'],
    blocks: [],
    invalid_emails: [],
  })) {
    const [listed, found] = await ask('GET', `suppression/${name}`);
    t.deepEqual([listed, found.map(({ email }: { email: string }) => email)], [200, emails], name);
  }
  t.deepEqual((await ask('GET', 'suppression/spam_reports'))[1], [complaint]);
  t.deepEqual((await ask('GET', 'suppression/spam_reports/Dora@there.invalid'))[1], [complaint]);
  t.deepEqual((await ask('GET', 'suppression/blocks/dora@there.invalid'))[1], []);
  t.is((await failureOf(ask('DELETE', 'suppression/unsubscribes/dora@there.invalid')))!.code, 404);
  t.is((await ask('DELETE', 'suppression/spam_reports/dora@there.invalid'))[0], 204);

  t.is((await failureOf(ask('DELETE', `${bounces}/ann@there.invalid`)))!.code, 404);
  t.is((await failureOf(ask('DELETE', bounces, { delete_all: true })))!.code, 400);
  t.is((await failureOf(ask('GET', `${bounces}/ann`)))!.code, 400);
  t.is((await failureOf(ask('GET', `${bounces}?limit=x`)))!.response.body.errors[0]!.field, 'limit');
  t.is((await ask('DELETE', `${bounces}/unknown@there.invalid`))[0], 204);
  t.is((await ask('DELETE', bounces, { emails: ['unknown+2@there.invalid', 'ann@there.invalid'] }))[0], 204);
  t.deepEqual((await ask('GET', bounces))[1], []);
  t.is((await ask('DELETE', `${global}/ANN@there.invalid`))[0], 204);
  t.is((await world.db('suppressions')).length, 0);
});
