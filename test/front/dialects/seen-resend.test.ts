/** What Resend's clients do beside sending: its SDK (resend-node), Symfony's bridge (symfony/resend-mailer), browsers. */
import test from 'ava';
import PostalMime from 'postal-mime';
import { Resend } from 'resend';
import { suppressAddress } from '#accounts/suppression-list.ts';
import { worldOfFile } from '#lab/scenes/shared-world.ts';
import { asNewTenant, type World } from '#lab/scenes/world.ts';
import { table } from '#lab/table.ts';
import { until } from '#lab/until.ts';

const file = worldOfFile();

const sdk = (world: World) => new Resend(world.key, { baseUrl: world.url() });
const mail = { from: 'app@sender.invalid', to: 'ann@there.invalid', subject: 'Hi', text: 'Hi' };
const inAnHour = (world: World) => new Date(world.clock.now() + 3_600_000).toISOString();

test.serial(
  'Resend: what does not wait any more cannot be canceled or moved, and the error says so',
  async (t) => {
    const world = await asNewTenant(file());
    const { emails } = sdk(world);
    const sent = (await emails.send(mail)).data!.id;
    await world.when(sent, ({ status }) => status === 'delivered');
    const refused = { statusCode: 422, name: 'validation_error' };
    const cancel = await emails.cancel(sent);
    t.like(cancel.error, refused);
    t.regex(cancel.error!.message, /^Email is not scheduled/);
    const move = await emails.update({ id: sent, scheduledAt: inAnHour(world) });
    t.like(move.error, refused);
    t.regex(move.error!.message, /^Email is not scheduled/);
    t.is((await emails.get(sent)).data!.last_event, 'delivered');

    const later = (await emails.send({ ...mail, scheduledAt: inAnHour(world) })).data!.id;
    t.is((await emails.cancel(later)).error, null);
    t.is((await emails.cancel(later)).error, null, 'the answer to a repeat is that of the first');
    t.like((await emails.update({ id: later, scheduledAt: inAnHour(world) })).error, refused);
    const deferred = (await emails.send({ ...mail, to: 'tempfail@there.invalid' })).data!.id;
    await world.when(deferred, ({ status }) => status === 'deferred');
    t.is((await emails.cancel(deferred)).error, null, 'it waits for its next attempt');
    t.is((await emails.get(deferred)).data!.last_event, 'canceled');

    const change = { db: world.db, orgId: world.orgId, now: world.clock.now() };
    await suppressAddress(change, 'gone@there.invalid');
    const dropped = (await emails.send({ ...mail, to: 'gone@there.invalid' })).data!.id;
    t.like((await emails.cancel(dropped)).error, refused, 'nothing of a suppressed one waits');
  },
);

test.serial(
  'Resend: the list of emails says of each what the SDK has members for, and goes both ways',
  async (t) => {
    const world = await asNewTenant(file());
    const { emails } = sdk(world);
    const scheduledAt = inAnHour(world);
    const ids: string[] = [];
    for (let n = 0; n < 7; n += 1) ids.unshift((await emails.send({ ...mail, subject: `${n}` })).data!.id);
    const full = {
      ...mail,
      cc: 'c@there.invalid',
      bcc: ['b@there.invalid'],
      replyTo: ['r@x.org', 's@x.org'],
    };
    ids.unshift((await emails.send({ ...full, scheduledAt })).data!.id);

    const { data: page } = await emails.list({ limit: 1 });
    t.like(page!.data[0], {
      id: ids[0],
      to: ['ann@there.invalid'],
      cc: ['c@there.invalid'],
      bcc: ['b@there.invalid'],
      reply_to: ['r@x.org', 's@x.org'],
      scheduled_at: scheduledAt,
      last_event: 'scheduled',
      topic_id: null,
    });
    const { data: one } = await emails.get(ids[0]!);
    for (const [name, value] of Object.entries(page!.data[0]!))
      t.deepEqual((one as unknown as Record<string, unknown>)[name], value, name);
    t.like((await emails.list({ limit: 2 })).data!.data[1], { reply_to: null, scheduled_at: null });

    const listed = async (options: object) => {
      const { data, error } = await emails.list(options as never);
      t.is(error, null);
      return [data!.data.map(({ id }) => ids.indexOf(id)), data!.has_more];
    };
    t.deepEqual(await listed({ before: ids[5]!, limit: 2 }), [[3, 4], true]);
    t.deepEqual(await listed({ before: ids[3]!, limit: 2 }), [[1, 2], true]);
    t.deepEqual(await listed({ before: ids[2]!, limit: 2 }), [[0, 1], false]);
    t.deepEqual(await listed({ before: ids[0]!, limit: 2 }), [[], false]);
    t.deepEqual(await listed({ before: ids[7]! }), [[0, 1, 2, 3, 4, 5, 6], false]);
    t.deepEqual(await listed({ after: ids[5]!, limit: 2 }), [[6, 7], false]);
    for (const options of [{ after: ids[1]!, before: ids[3]! }, { limit: 101 }, { limit: 0 }])
      t.like((await emails.list(options as never)).error, { statusCode: 422, name: 'validation_error' });
    for (const options of [{ before: 'x' }, { after: 'x' }])
      t.like((await emails.list(options)).error, { statusCode: 400, name: 'validation_error' });
  },
);

test.serial('Resend: other lists go both ways, too', async (t) => {
  const world = await asNewTenant(file());
  const resend = sdk(world);
  for (const label of ['one', 'two', 'three']) await resend.apiKeys.create({ name: label });
  const keys = (await resend.apiKeys.list()).data!.data.map(({ id }) => id);
  t.is(keys.length, 4);
  t.deepEqual(
    (await resend.apiKeys.list({ before: keys[3]!, limit: 2 })).data!.data.map(({ id }) => id),
    keys.slice(1, 3),
  );
  const change = { db: world.db, orgId: world.orgId, now: world.clock.now() };
  for (const name of ['a', 'b', 'c', 'd']) await suppressAddress(change, `${name}@there.invalid`);
  const names = async (options: object) => {
    const query = new URLSearchParams(options as Record<string, string>);
    const headers = { authorization: `Bearer ${world.key}` };
    const response = await fetch(`${world.url()}/suppressions?${query}`, { headers });
    const { data, has_more } = (await response.json()) as { data: { id: string }[]; has_more: boolean };
    return [data.map(({ id }) => id[0]).join(''), has_more];
  };
  t.deepEqual(await names({ before: 'd@there.invalid', limit: 2 }), ['bc', true]);
  t.deepEqual(await names({ before: 'b@there.invalid', limit: 2 }), ['a', false]);
  t.deepEqual(await names({ after: 'b@there.invalid', limit: 2 }), ['cd', false]);
});

const post = async (world: World, body: object) => {
  const response = await fetch(`${world.url()}/emails`, {
    method: 'POST',
    headers: { authorization: `Bearer ${world.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ ...mail, ...body }),
  });
  return { status: response.status, body: (await response.json()) as { id: string; message: string } };
};

test.serial("Resend: tags are taken in Symfony's form, and seventy-five of them", async (t) => {
  const world = await asNewTenant(file());
  const tagsOf = async (tags: unknown) => {
    const { status, body } = await post(world, { tags });
    t.is(status, 200, body.message);
    return (await world.get(body.id)).tags;
  };
  t.deepEqual(await tagsOf([{ 'X-Tag': 'welcome' }]), { 'X-Tag': 'welcome' });
  t.deepEqual(await tagsOf([{ 'X-Tag': 'a' }, { 'X-Tag': 'b' }, { name: 'plan', value: 'pro' }]), {
    'X-Tag': 'a,b',
    plan: 'pro',
  });
  t.deepEqual(await tagsOf([{ one: '1', two: '2' }]), { one: '1', two: '2' });
  t.deepEqual(await tagsOf([{ 'X-Tag': 7 }]), { 'X-Tag': '7' });
  t.deepEqual(await tagsOf([]), {});
  t.deepEqual(await tagsOf({}), {});
  const many = Array.from({ length: 75 }, (_, n) => ({ name: `tag_${n}`, value: 'v'.repeat(60) }));
  t.is(Object.keys(await tagsOf(many)).length, 75);
  t.is((await tagsOf(many.map((_, n) => ({ 'X-Tag': `t${n}` }))))['X-Tag'].split(',').length, 75);
  for (const tags of [
    [...many, { name: 'more', value: '1' }],
    ['welcome'],
    [{ name: 'a'.repeat(257), value: '1' }],
    Array.from({ length: 75 }, (_, n) => ({ name: `tag_${n}`, value: 'v'.repeat(250) })),
  ]) {
    const { status, body } = await post(world, { tags });
    t.is(status, 422, JSON.stringify(tags).slice(0, 100));
    t.regex(body.message, /tags/);
  }
  // The contract's ten are those of our own endpoint.
  const eleven = Object.fromEntries(many.slice(0, 11).map(({ name, value }) => [name, value]));
  t.is((await world.send({ to: 'ann@there.invalid', tags: eleven })).status, 400);
});

test.serial('a file keeps its name when it is downloaded, with a fallback in ASCII', async (t) => {
  const world = await asNewTenant(file());
  const { emails } = sdk(world);
  const names: [filename: string, header: string][] = table('dialects/file-names');
  const attachments = names.map(([filename]) => ({ filename, content: Buffer.from('x').toString('base64') }));
  const { id } = (await emails.send({ ...mail, attachments })).data!;
  const { data } = (await emails.attachments.list({ emailId: id })).data!;
  for (const [filename, header] of names) {
    const found = data.find((one) => one.filename === filename)!;
    const response = await fetch(found.download_url);
    t.is(response.status, 200);
    t.is(response.headers.get('content-disposition'), header);
  }
});

/** resend/n8n-nodes-resend#76, anymail/django-anymail#407, mailgun/mailgun-php#830, ActiveCampaign/postmark-wordpress#113. */
test.serial(
  'names of Node, files without a name, empty and absent maps, as calls without an SDK have them',
  async (t) => {
    const world = await asNewTenant(file());
    const post = async (path: string, body: object | FormData, headers: Record<string, string>) => {
      const isForm = body instanceof FormData;
      const response = await fetch(`${world.url()}${path}`, {
        method: 'POST',
        headers: { ...headers, ...(!isForm && { 'content-type': 'application/json' }) },
        body: isForm ? body : JSON.stringify(body),
      });
      t.true(response.ok, `${path}: ${response.status}`);
    };
    const arrived = async (subject: string) => {
      const { raw } = await until(() =>
        world.mx[0]!.messages.find((one) => one.raw.includes(`: ${subject}\r`)),
      );
      return PostalMime.parse(raw);
    };
    const bearer = { authorization: `Bearer ${world.key}` };
    const image = { content: 'eA==', filename: '', content_id: 'logo' };
    const resend = { ...mail, subject: 'r', replyTo: 'help@sender.invalid', html: '<img src="cid:logo">' };
    await post('/emails', { ...resend, attachments: [{ ...image, contentType: 'image/png' }] }, bearer);
    const one = await arrived('r');
    t.is(one.replyTo?.[0]?.address, 'help@sender.invalid');
    t.is(one.attachments[0]!.filename, 'attachment.png');

    const personalizations = [{ to: [{ email: mail.to }], custom_args: { plan: null } }];
    const sendgrid = { personalizations, from: { email: mail.from }, subject: 's' };
    const content = [{ type: 'text/html', value: resend.html }];
    await post(
      '/v3/mail/send',
      { ...sendgrid, content, attachments: [{ ...image, type: 'image/png' }] },
      bearer,
    );
    t.is((await arrived('s')).attachments[0]!.filename, 'attachment.png');

    const form = new FormData();
    const fields = { from: mail.from, to: mail.to, subject: 'm', text: 'Hi', 'recipient-variables': '[]' };
    for (const [name, value] of Object.entries(fields)) form.append(name, value);
    await post('/v3/sender.invalid/messages', form, { authorization: `Basic ${btoa(`api:${world.key}`)}` });

    const postmark = { From: mail.from, To: mail.to, Subject: 'p', TextBody: 'Hi', Metadata: { ip: null } };
    await post('/email', postmark, { 'x-postmark-server-token': world.key });
  },
);
