/** Resend's official SDK against a real server: what nearly every application uses, and the set-up by API. */
import test from 'ava';
import PostalMime from 'postal-mime';
import { Resend } from 'resend';
import { areSigned } from '#lab/dkim.ts';
import { startFileServer } from '#lab/scenes/file-server.ts';
import { worldOfFile } from '#lab/scenes/shared-world.ts';
import { startReceiver } from '#lab/scenes/webhook-receiver.ts';
import { asNewTenant, startWorld, type World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

const shared = worldOfFile({
  zone: { 'files.invalid': { A: ['127.0.0.1'] } },
  settings: { POSTERN_ATTACHMENT_ALLOW_PRIVATE: 'true', POSTERN_WEBHOOK_ALLOW_PRIVATE: 'true' },
});

const sdk = (world: World, key = world.key, path = '') =>
  new Resend(key, { baseUrl: `${world.url()}${path}` });

test.serial('Resend: the SDK reads emails at the root and under /compat/resend', async (t) => {
  const world = await asNewTenant(shared());
  const sent = await world.send({ to: ['ann@there.invalid', 'bob@there.invalid'], tags: { plan: 'pro' } });
  const { emailId, id } = sent.body;
  await world.when(emailId, ({ status }) => status === 'delivered');
  for (const path of ['', '/', '/compat/resend', '/compat/resend/']) {
    const { data, error } = await sdk(world, world.key, path).emails.get(emailId);
    t.is(error, null, path);
    t.like(data, { object: 'email', id: emailId, message_id: `<${id}>`, last_event: 'delivered' });
    t.deepEqual(data!.tags, [{ name: 'plan', value: 'pro' }]);
  }
  const second = (await world.send({ to: 'ann@there.invalid', subject: 'Second' })).body.emailId;
  const resend = sdk(world);
  const first = await resend.emails.list({ limit: 1 });
  t.like(first.data, { object: 'list', has_more: true });
  t.is(first.data!.data[0]!.id, second);
  const next = await resend.emails.list({ limit: 1, after: second });
  t.deepEqual([next.data!.has_more, next.data!.data[0]!.id], [false, emailId]);
});

test.serial('Resend: what the SDK sends arrives, signed, with every field', async (t) => {
  const world = await asNewTenant(shared());
  const server = await startFileServer(t, (_path, response) => response.end('a file'));
  const resend = sdk(world);
  const { data, error } = await resend.emails.send({
    from: 'Acme, Inc. <app@sender.invalid>',
    to: ['Ann, the first <ann@there.invalid>', 'bob@there.invalid'],
    cc: 'cleo@there.invalid',
    bcc: ['dora@there.invalid'],
    replyTo: ['help@sender.invalid', 'desk@sender.invalid'],
    subject: 'Grüße',
    html: '<p>Hi <img src="cid:logo"></p>',
    text: 'Hi',
    headers: { 'X-Entity-Ref-ID': '7' },
    tags: [{ name: 'plan', value: 'pro' }],
    attachments: [
      { filename: 'logo.png', content: Buffer.from('png'), contentId: 'logo', contentType: 'image/png' },
      { filename: 'invoice.pdf', path: `${server.url}/4711` },
    ],
  });
  t.is(error, null);
  t.deepEqual(server.asked, ['/4711']);
  await world.when(data!.id, ({ status }) => status === 'delivered');
  const messages = world.mx[0]!.messages.filter(({ raw: mail }) => mail.includes('X-Entity-Ref-ID: 7'));
  t.is(messages.length, 4);
  const { raw } = messages.find(({ to }) => to[0]!.startsWith('dora'))!;
  await areSigned(t, world);
  const mail = await PostalMime.parse(raw);
  t.deepEqual(mail.from, { name: 'Acme, Inc.', address: 'app@sender.invalid' });
  t.deepEqual(mail.to![0], { name: 'Ann, the first', address: 'ann@there.invalid' });
  t.deepEqual(
    mail.replyTo!.map(({ address }) => address),
    ['help@sender.invalid', 'desk@sender.invalid'],
  );
  t.is(mail.attachments[0]!.contentId, '<logo>');
  t.false(raw.includes('dora@'), 'bcc is in no header');
  const files = (await resend.emails.attachments.list({ emailId: data!.id })).data!.data;
  t.deepEqual(
    files.map((file) => [
      file.filename,
      file.size,
      file.content_type,
      file.content_disposition,
      file.content_id,
    ]),
    [
      ['logo.png', 3, 'image/png', 'inline', 'logo'],
      ['invoice.pdf', 6, 'application/pdf', 'attachment', undefined],
    ],
  );
  const one = await resend.emails.attachments.get({ emailId: data!.id, id: files[0]!.id });
  t.like(one.data, { object: 'attachment', filename: 'logo.png' });
  const { pathname, search } = new URL(one.data!.download_url);
  const read = (path: string) => fetch(`${world.url()}${path}`);
  const downloaded = await read(`${pathname}${search}`);
  t.is(await downloaded.text(), 'png');
  t.regex(downloaded.headers.get('content-disposition')!, /^attachment; filename="logo.png"/);
  for (const forged of [
    search.replace('expires=1', 'expires=2'),
    search.replace(/signature=./, 'signature='),
    '',
  ])
    t.like(await (await read(`${pathname}${forged}`)).json(), { statusCode: 404, name: 'not_found' });
  const other = sdk(await asNewTenant(world));
  t.like((await other.emails.attachments.list({ emailId: data!.id })).error, { statusCode: 404 });
  t.is((await resend.emails.attachments.get({ emailId: data!.id, id: '2' })).error!.statusCode, 404);
  const { data: kept } = await resend.emails.get(data!.id);
  t.like(kept, { to: ['ann@there.invalid', 'bob@there.invalid'], cc: ['cleo@there.invalid'] });
  t.deepEqual(kept!.bcc, ['dora@there.invalid']);
});

test.serial(
  'Resend: two like emails are two, and a repeat with a key is one; later ones move and are canceled',
  async (t) => {
    const world = await asNewTenant(shared());
    const resend = sdk(world);
    const mail = { from: 'app@sender.invalid', to: 'ann@there.invalid', subject: 'Hi', text: 'Hi' };
    const ids = await Promise.all([mail, mail].map(async (one) => (await resend.emails.send(one)).data!.id));
    t.is(new Set(ids).size, 2);
    const repeated = [];
    for (let n = 0; n < 2; n += 1)
      repeated.push((await resend.emails.send(mail, { idempotencyKey: 'once' })).data!.id);
    t.is(repeated[0], repeated[1]);
    const changed = await resend.emails.send({ ...mail, text: 'Other' }, { idempotencyKey: 'once' });
    t.like(changed.error, { statusCode: 409, name: 'invalid_idempotent_request' });
    const tooLong = await resend.emails.send(mail, { idempotencyKey: 'x'.repeat(257) });
    t.like(tooLong.error, { statusCode: 400, name: 'invalid_idempotency_key' });
    const soon = async () =>
      (await resend.emails.send({ ...mail, scheduledAt: 'in 5 min' }, { idempotencyKey: 'soon' })).data!.id;
    const later = await soon();
    await world.clock.advance(1000);
    t.is(await soon(), later, 'the words of a time are compared, not the time');
    for (const [words, hours] of [
      ['in an hour', 1],
      ['in 90 minutes', 1.5],
      ['in 2 Days', 48],
      ['in 1 week', 168],
    ] as const) {
      const { id } = (await resend.emails.send({ ...mail, scheduledAt: words })).data!;
      const at = new Date(world.clock.now() + hours * 3_600_000).toISOString();
      t.is((await resend.emails.get(id)).data!.scheduled_at, at, words);
    }
    t.is((await resend.emails.get(later)).data!.last_event, 'scheduled');
    const past = '2020-01-01T00:00:00Z';
    for (const { error } of [
      await resend.emails.send({ ...mail, scheduledAt: past }),
      await resend.emails.update({ id: later, scheduledAt: past }),
    ])
      t.regex(error!.message, /^scheduled_at: must be in the future/);
    const at = new Date(world.clock.now() + 3_600_000).toISOString();
    t.is((await resend.emails.update({ id: later, scheduledAt: at })).error, null);
    t.is((await resend.emails.get(later)).data!.scheduled_at, at);
    const { data: domain } = await resend.domains.create({ name: 'other.example' });
    const permission = { permission: 'sending_access', domain_id: domain!.id } as const;
    const { data: other } = await resend.apiKeys.create({ name: 'other', ...permission });
    t.like((await sdk(world, other!.token).emails.cancel(later)).error, {
      statusCode: 403,
      name: 'validation_error',
    });
    t.is((await resend.emails.cancel(later)).error, null);
    t.is((await resend.emails.get(later)).data!.last_event, 'canceled');
  },
);

test.serial('Resend: a batch is accepted as a whole or, if permissive, without its bad emails', async (t) => {
  const world = await asNewTenant(shared(), { quota: 100 });
  const resend = sdk(world);
  const mail = { from: 'app@sender.invalid', to: 'ann@there.invalid', subject: 'Of a batch', text: 'Hi' };
  const file = { filename: 'a.txt', content: Buffer.from('a text') };
  const bad = { ...mail, to: 'nobody' };
  const whole = await resend.batch.send([mail, { ...mail, attachments: [file] } as never]);
  t.is(whole.error, null);
  t.deepEqual(Object.keys(whole.data!), ['data']);
  const ids = whole.data!.data.map(({ id }) => id);
  for (const id of ids) await world.when(id, ({ status }) => status === 'delivered');
  const raws = world.mx[0]!.messages.map(({ raw }) => raw).filter((raw) => raw.includes('Of a batch'));
  t.is(raws.length, 2);
  await areSigned(t, world);
  const [, second] = raws.sort((a, b) => a.length - b.length);
  t.is((await PostalMime.parse(second!)).attachments[0]!.filename, 'a.txt');

  const strict = await resend.batch.send([mail, bad]);
  t.like(strict.error, { statusCode: 422, name: 'validation_error' });
  t.regex(strict.error!.message, /^emails\.1: to/);
  t.is((await world.db('emails').where({ org_id: world.orgId })).length, 2);
  const permissive = await resend.batch.send([bad, mail, { ...mail, from: 'app@other.invalid' }], {
    batchValidation: 'permissive',
  });
  t.is(permissive.data!.data.length, 1);
  t.deepEqual(
    permissive.data!.errors.map(({ index }) => index),
    [0, 2],
  );
  t.regex(permissive.data!.errors[0]!.message, /^to/);

  const once = (list: object[]) => resend.batch.send(list as never, { idempotencyKey: 'once' });
  const first = await once([mail, mail]);
  t.is(new Set(first.data!.data.map(({ id }) => id)).size, 2);
  t.deepEqual((await once([mail, mail])).data, first.data);
  t.like((await once([mail, { ...mail, text: 'Other' }])).error, {
    statusCode: 409,
    name: 'invalid_idempotent_request',
  });
  t.is((await world.db('emails').where({ org_id: world.orgId })).length, 5);
  t.is((await world.db('organizations').where({ id: world.orgId }).first('quota_used')).quota_used, 5);
  t.regex((await resend.batch.send(Array(101).fill(mail))).error!.message, /100/);
  t.like((await resend.batch.send([])).error, { statusCode: 422 });
  // The day has room for one more.
  await world.db('organizations').where({ id: world.orgId }).update({ emails_per_day: 6 });
  t.like((await resend.batch.send([mail, mail])).error, { statusCode: 429, name: 'rate_limit_exceeded' });
  t.is((await world.db('emails').where({ org_id: world.orgId })).length, 5);
});

test.serial(
  'Resend: a send that is refused says why, under the names of the SDK, and charges nothing',
  async (t) => {
    const world = await asNewTenant(shared());
    const resend = sdk(world);
    const mail = { from: 'app@sender.invalid', to: 'ann@there.invalid', subject: 'Hi', text: 'Hi' };
    const refused = async (change: object) =>
      (await resend.emails.send({ ...mail, ...change } as never)).error!;
    t.like(await refused({ from: 'app@other.invalid' }), { statusCode: 403, name: 'validation_error' });
    t.like(await refused({ subject: undefined }), { statusCode: 422, name: 'missing_required_field' });
    for (const [subject, message] of [
      [undefined, 'is required'],
      [['a'], 'must be a string, not array; write one, without brackets: "…"'],
      ['', 'must have at least 1 character'],
    ])
      t.is((await refused({ subject })).message, `subject: ${message}`);
    t.regex((await resend.emails.list({ limit: 1000 })).error!.message, /^limit: must be at most 100$/);
    t.like(await refused({ from: 'nobody' }), { statusCode: 422, name: 'invalid_from_address' });
    t.like(await refused({ attachments: [{ filename: 'a.txt' }] }), {
      statusCode: 422,
      name: 'invalid_attachment',
    });
    t.regex((await refused({ topicId: 'news' })).message, /^stream: the organization has no stream "news"/);
    t.regex((await refused({ replyTo: 'nobody' })).message, /^reply_to/);
    t.regex((await refused({ template: { id: 'x' } })).message, /no templates/);
    t.regex(
      (await refused({ to: Array.from({ length: 51 }, (_, n) => `a${n}@there.invalid`) })).message,
      /50/,
    );
    t.regex((await refused({ scheduledAt: 'tomorrow at 9am' })).message, /^scheduled_at.*ISO 8601/);
    t.is((await world.db('emails').where({ org_id: world.orgId })).length, 0);
    t.is((await world.db('credit_entries').where({ org_id: world.orgId }).where('change', '<', 0)).length, 0);
  },
);

test.serial('Resend: errors have the form that the SDKs read', async (t) => {
  const world = await asNewTenant(shared());
  const nobody = '0198c9a4-6f1e-7d52-b3a4-5f0c8b1d9e27';
  const wrong = await sdk(world, 'em_wrong').emails.get(nobody);
  t.like(wrong.error, { statusCode: 403, name: 'invalid_api_key' });
  t.like((await sdk(world).emails.get(nobody)).error, { statusCode: 404, name: 'not_found' });
  t.like((await sdk(world).emails.get('x')).error, { statusCode: 404, name: 'not_found' });
  t.like((await sdk(world).contacts.list()).error, { statusCode: 404, name: 'not_found' });
  const missing = await fetch(`${world.url()}/emails`);
  t.is(missing.status, 401);
  t.like(await missing.json(), { statusCode: 401, name: 'missing_api_key' });
  t.like(
    (await sdk(world).apiKeys.create({ name: '\u0000' })).error,
    { statusCode: 422 },
    'PostgreSQL stores no NUL',
  );
  t.like((await sdk(world).domains.create({ name: 'no domain' })).error, {
    statusCode: 422,
    name: 'validation_error',
  });
  t.like((await sdk(world).emails.share(nobody)).error, { statusCode: 404, name: 'not_found' });
  const headers = { authorization: `Bearer ${world.key}`, 'content-type': 'application/json' };
  const broken = await fetch(`${world.url()}/domains`, { method: 'POST', headers, body: '{' });
  t.like(await broken.json(), { statusCode: 400, name: 'validation_error' });
  const notAllowed = await fetch(`${world.url()}/emails/batch`, { method: 'PUT', headers });
  t.regex(notAllowed.headers.get('allow')!, /POST/);
  t.like(await notAllowed.json(), { statusCode: 405, name: 'method_not_allowed' });

  const limited = await asNewTenant(world, { quota: 1 });
  const mail = { from: 'app@sender.invalid', to: 'ann@there.invalid', subject: 'Hi', text: 'Hi' };
  t.is((await sdk(limited).emails.send(mail)).error, null);
  t.like((await sdk(limited).emails.send(mail)).error, { statusCode: 429, name: 'monthly_quota_exceeded' });
  const slow = await asNewTenant(world);
  await world.db('organizations').where({ id: slow.orgId }).update({ requests_per_day: 1 });
  t.is((await sdk(slow).domains.list()).error, null);
  const over = await sdk(slow).domains.list();
  t.like(over.error, { statusCode: 429, name: 'rate_limit_exceeded' });
  t.like(over.headers, { 'ratelimit-limit': '1', 'ratelimit-remaining': '0' });
  t.true(Number(over.headers!['retry-after']) > 0);
});

test.serial('Resend: domains, keys, suppressions and webhooks are set up by the SDK', async (t) => {
  const world = await asNewTenant(shared());
  const resend = sdk(world);
  const { data: domain } = await resend.domains.create({
    name: 'new.example',
    clickTracking: true,
    tls: 'enforced',
  });
  t.like(domain, { name: 'new.example', status: 'pending', open_tracking: false, click_tracking: true });
  t.is((await world.db('domains').where({ id: domain!.id }).first('tls')).tls, 'encrypted');
  t.true(domain!.records.some(({ record }) => record === 'DKIM'));
  t.is((await resend.domains.get(domain!.id)).data!.name, 'new.example');
  t.is((await resend.domains.get('new.example')).data!.id, domain!.id);
  t.is((await resend.domains.update({ id: domain!.id, openTracking: true })).error, null);
  const dkim = domain!.records.find(({ record }) => record === 'DKIM')!;
  const verify = async () => {
    const { id, records } = (await resend.domains.verify(domain!.id)).data as unknown as NonNullable<
      typeof domain
    >;
    const { status } = (await resend.domains.get(domain!.id)).data!;
    return [id === domain!.id, status, records.find(({ record }) => record === 'DKIM')!.status];
  };
  t.deepEqual(await verify(), [true, 'pending', 'pending']);
  world.dns.set({ [dkim.name]: { TXT: [dkim.value] } });
  t.deepEqual(await verify(), [true, 'verified', 'verified']);
  world.dns.set({ [dkim.name]: null });
  t.deepEqual(await verify(), [true, 'verified', 'pending'], 'a missing record is reported only');
  t.is((await resend.domains.list()).data!.data.length, 2);

  const { data: key } = await resend.apiKeys.create({ name: 'mailer', permission: 'sending_access' });
  t.like((await sdk(world, key!.token).domains.list()).error, { name: 'restricted_api_key' });
  t.is((await resend.apiKeys.list()).data!.data.length, 2);
  t.is((await resend.apiKeys.remove(key!.id)).error, null);
  t.is((await resend.domains.remove(domain!.id)).data!.deleted, true);

  t.is((await resend.suppressions.add({ email: 'Dora@there.invalid' })).error, null);
  t.like((await resend.suppressions.get('dora@there.invalid')).data, { origin: 'manual' });
  t.is((await resend.suppressions.list()).data!.data.length, 1);
  t.is((await resend.suppressions.list({ origin: 'bounce' })).data!.data.length, 0);
  const emails = ['emil@there.invalid', 'fay@there.invalid'];
  t.is((await resend.suppressions.batch.add({ emails })).data!.data.length, 2);
  const page = (await resend.suppressions.list({ origin: 'manual', limit: 2 })).data!;
  t.deepEqual([page.has_more, page.data[1]!.email], [true, 'emil@there.invalid']);
  const rest = (await resend.suppressions.list({ limit: 2, after: page.data[1]!.id })).data!;
  t.deepEqual([rest.has_more, rest.data.map(({ email }) => email)], [false, ['fay@there.invalid']]);
  const gone = (await resend.suppressions.batch.remove({ ids: [...emails, 'ann@there.invalid'] })).data!.data;
  t.deepEqual(
    gone.map(({ deleted }) => deleted),
    [true, true, false],
  );
  t.is((await resend.suppressions.remove('dora@there.invalid')).data!.deleted, true);

  const receiver = await startReceiver(t, { now: world.clock.now });
  const made = await resend.webhooks.create({ endpoint: receiver.url, events: ['email.sent'] });
  receiver.secret = made.data!.signing_secret;
  await world.send({ to: 'ann@there.invalid' });
  await receiver.received(1);
  t.is(receiver.requests[0]!.fault, null);
  t.is(receiver.requests[0]!.body.type, 'email.sent');
  t.like((await resend.webhooks.get(made.data!.id)).data, { status: 'enabled', events: ['email.sent'] });
  t.is((await resend.webhooks.update(made.data!.id, { status: 'disabled' })).error, null);
  t.is((await resend.webhooks.list()).data!.data[0]!.status, 'disabled');
  t.is((await resend.webhooks.remove(made.data!.id)).data!.deleted, true);
});

test.serial(
  'Resend: the events of a webhook are listed with their attempts and replayed, and its secret rotates',
  async (t) => {
    const world = await asNewTenant(shared());
    const resend = sdk(world);
    const receiver = await startReceiver(t, { now: world.clock.now });
    const made = await resend.webhooks.create({
      endpoint: receiver.url,
      events: ['email.sent', 'email.delivered'],
    });
    const webhookId = made.data!.id;
    receiver.secret = made.data!.signing_secret;
    const { emailId } = (await world.send({ to: 'ann@there.invalid' })).body;
    await receiver.received(2);
    const list = () => resend.webhooks.events.list({ webhookId });
    const { data: events } = await until(
      async () => {
        const page = await list();
        return page.data!.data.every(({ status }) => status === 'success') && page;
      },
      { what: 'both events to be posted' },
    );
    t.deepEqual(
      events!.data.map(({ type }) => type),
      ['email.delivered', 'email.sent'],
    );
    const [delivered, sent] = events!.data.map(({ id }) => id) as [string, string];
    const first = await resend.webhooks.events.list({ webhookId, limit: 1 });
    t.deepEqual([first.data!.has_more, first.data!.data[0]!.id], [true, delivered]);
    const next = await resend.webhooks.events.list({ webhookId, limit: 1, after: delivered });
    t.deepEqual([next.data!.has_more, next.data!.data[0]!.id], [false, sent]);
    const { data: one } = await resend.webhooks.events.get({ webhookId, eventId: sent });
    t.like(one, { object: 'webhook_event', id: sent, status: 'success', next_attempt_at: null });
    t.deepEqual(one!.payload as unknown, receiver.requests[0]!.body);
    t.like(one!.payload, { type: 'email.sent', data: { email_id: emailId } });
    const attempts = (await resend.webhooks.events.attempts.list({ webhookId, eventId: sent })).data!;
    t.like(attempts.data, [{ http_status_code: 204 }]);

    const rotated = await resend.webhooks.rotateSigningSecret(webhookId);
    t.not(rotated.data!.signing_secret, made.data!.signing_secret);
    receiver.secret = rotated.data!.signing_secret;
    t.like((await resend.webhooks.events.replay({ webhookId, eventId: sent })).data, { id: sent });
    await world.clock.passUntil(() => receiver.requests.length === 3);
    t.is(receiver.requests[2]!.fault, null);
    t.deepEqual(receiver.requests[2]!.body, receiver.requests[0]!.body);
    const { raw: payload, headers } = receiver.requests[2]!;
    const [id, timestamp, signature] = ['id', 'timestamp', 'signature'].map((name) =>
      String(headers[`svix-${name}`]),
    );
    t.like(
      resend.webhooks.verify({
        payload,
        headers: { id: id!, timestamp: timestamp!, signature: signature! },
        webhookSecret: receiver.secret!,
      }),
      { type: 'email.sent' },
    );
    const nobody = { webhookId, eventId: emailId };
    for (const call of [resend.webhooks.events.get(nobody), resend.webhooks.events.replay(nobody)])
      t.like((await call).error, { statusCode: 404, name: 'not_found' });
    t.like((await resend.webhooks.events.list({ webhookId, after: 'x' })).error, { statusCode: 400 });
  },
);

test('Resend: POSTERN_DIALECTS=none serves no other API', async (t) => {
  const world = await startWorld(t, { settings: { POSTERN_DIALECTS: 'none' } });
  const answer = await fetch(`${world.url()}/emails`, { headers: { authorization: `Bearer ${world.key}` } });
  t.is(answer.status, 404);
  t.like(await answer.json(), { error: 'NOT_FOUND' });
});

test.serial('Resend: a topic of 200,000 blanks is no stream', async (t) => {
  const world = await asNewTenant(shared());
  const mail = { from: 'app@sender.invalid', to: 'ann@there.invalid', subject: 'Hello', text: 'Hello' };
  const body = JSON.stringify({ ...mail, topic_id: ' '.repeat(200_000) });
  const answer = await world.call('POST', '/compat/resend/emails', { body });
  t.like(answer, { status: 422, body: { name: 'validation_error' } });
});
