/** Mailgun's official SDK against a real server, and what Ghost, Laravel and Symfony do with it. */
import test from 'ava';
import Mailgun from 'mailgun.js';
import PostalMime from 'postal-mime';
import { makeKey } from '#accounts/create-key.ts';
import { setQuota } from '#accounts/rows/credit-ledger.ts';
import { suppressAddress } from '#accounts/suppression-list.ts';
import { stallsAtMost } from '#lab/cost.ts';
import { areSigned } from '#lab/dkim.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { picture } from '#lab/table.ts';
import { until } from '#lab/until.ts';

const domain = 'sender.invalid';
const mail = { from: 'App <app@sender.invalid>', to: 'ann@there.invalid', subject: 'Hi', text: 'Hi' };

function sdk(world: World, key = world.key, path = '') {
  // biome-ignore lint/suspicious/noExplicitAny: the package's type of its default export is that of its CommonJS form
  return new (Mailgun as any)(FormData).client({
    username: 'api',
    key,
    url: `${world.url()}${path}`,
  }) as ReturnType<InstanceType<typeof Mailgun.default>['client']>;
}

/** The messages that arrived, by their recipients. */
const arrived = (world: World) => new Map(world.mx[0]!.messages.map(({ to, raw }) => [to[0]!, raw] as const));

async function form(world: World, path: string, fields: [string, string | Blob, string?][]) {
  const body = new FormData();
  for (const [name, value, file] of fields)
    if (typeof value === 'string') body.append(name, value);
    else body.append(name, value, file);
  return post(world, path, { body });
}

/** The key as it is read from a secret's file; the SDK's calls have it alone. */
async function post(world: World, path: string, init: RequestInit) {
  const authorization = `Basic ${Buffer.from(`api:${world.key}\n`).toString('base64')}`;
  const headers = { authorization, ...init.headers };
  const response = await fetch(`${world.url()}/v3/${path}`, { method: 'POST', ...init, headers });
  const text = await response.text();
  return { status: response.status, text, body: text.startsWith('{') ? JSON.parse(text) : null };
}

test('Mailgun: what the SDK sends arrives, signed, with every field', async (t) => {
  const world = await startWorld(t);
  const answer = await sdk(world).messages.create(domain, {
    from: 'Acme, Inc. <app@sender.invalid>',
    to: ['Ann, the first <ann@there.invalid>, eve@there.invalid', 'bob@there.invalid'],
    cc: 'cleo@there.invalid',
    bcc: 'dora@there.invalid',
    subject: 'Grüße',
    html: '<p>Hi <img src="cid:logo.png"></p>',
    text: 'Hi',
    'h:X-Entity': '7',
    'h:Reply-To': 'help@sender.invalid, desk@sender.invalid',
    'v:plan': 'pro',
    'o:tag': ['news', 'autumn'],
    'o:tracking': 'no',
    attachment: { filename: 'a.txt', data: Buffer.from('a text') },
    inline: { filename: 'logo.png', data: Buffer.from('png'), contentType: 'image/png' },
  });
  t.is(answer.message, 'Queued. Thank you.');
  t.regex(answer.id!, /^<[^<>]+@[^<>]+>$/);
  const { id } = await world.db('emails').first('id');
  const email = await world.when(id, ({ status }) => status === 'delivered');
  t.deepEqual(email.tags, { plan: 'pro', tag: 'news,autumn' });
  const messages = arrived(world);
  t.is(messages.size, 5);
  const raw = messages.get('dora@there.invalid')!;
  await areSigned(t, world);
  const read = await PostalMime.parse(raw);
  t.deepEqual(read.from, { name: 'Acme, Inc.', address: 'app@sender.invalid' });
  t.deepEqual(
    read.to!.map(({ name, address }) => [name, address]),
    [
      ['Ann, the first', 'ann@there.invalid'],
      ['', 'eve@there.invalid'],
      ['', 'bob@there.invalid'],
    ],
  );
  t.deepEqual(
    read.replyTo!.map(({ address }) => address),
    ['help@sender.invalid', 'desk@sender.invalid'],
  );
  t.is(read.headers.find(({ key }) => key === 'x-entity')!.value, '7');
  const file = (name: string) => read.attachments.find(({ filename }) => filename === name)!;
  t.like(file('a.txt'), { mimeType: 'text/plain', disposition: 'attachment' });
  t.like(file('logo.png'), { mimeType: 'image/png', contentId: '<logo.png>', disposition: 'inline' });
  t.false(raw.includes('dora@'), 'bcc is in no header');
});

test('Mailgun: of two pictures with the same name, both are sent and the first is shown', async (t) => {
  const world = await startWorld(t);
  const logo = (text: string) => ({
    filename: 'logo.png',
    data: Buffer.from(text),
    contentType: 'image/png',
  });
  const html = '<img src="cid:logo.png">';
  await sdk(world).messages.create(domain, { ...mail, html, inline: [logo('one'), logo('two')] });
  const message = await until(() => world.mx[0]!.messages[0]);
  const { attachments } = await PostalMime.parse(message.raw);
  t.deepEqual(
    attachments.map(({ filename, contentId }) => [filename, contentId]),
    [
      ['logo.png', '<logo.png>'],
      ['logo.png', undefined],
    ],
  );
});

test('Mailgun: with recipient variables each recipient gets an email of their own, or nobody does', async (t) => {
  const world = await startWorld(t);
  const send = (change: object) =>
    sdk(world).messages.create(domain, {
      ...mail,
      to: ['ann@there.invalid', 'Bob@there.invalid'],
      subject: 'Hi %recipient.name%',
      text: '%recipient% has %recipient.count%, not %recipient.unknown%',
      'h:X-For': '%recipient.name%',
      'h:List-Unsubscribe': '<%recipient.leave%>, <%tag_unsubscribe_email%>',
      'recipient-variables': JSON.stringify({
        'ann@there.invalid': { name: 'Ann', count: 1, leave: 'https://sender.invalid/a' },
        'bob@there.invalid': { name: 'Bob', count: 2, leave: 'https://sender.invalid/b' },
      }),
      ...change,
    });
  const refused = async (change: object) =>
    (await t.throwsAsync(send(change))) as Error & { details: string };
  t.regex((await refused({ 'recipient-variables': '{' })).details, /not JSON/);
  t.regex((await refused({ cc: 'cleo@there.invalid' })).details, /cc/);
  const faulty = {
    'ann@there.invalid': { leave: 'https://a.invalid' },
    'bob@there.invalid': { leave: 'a b' },
  };
  t.regex((await refused({ 'recipient-variables': JSON.stringify(faulty) })).details, /List-Unsubscribe/);
  t.is((await world.db('emails')).length, 0);

  await send({});
  const emails = await world.db('emails').select('id');
  t.is(emails.length, 2);
  for (const { id } of emails) await world.when(id, ({ status }) => status === 'delivered');
  const read = await PostalMime.parse(arrived(world).get('Bob@there.invalid')!);
  t.is(read.subject, 'Hi Bob');
  t.is(read.text!.trim(), 'Bob@there.invalid has 2, not %recipient.unknown%');
  t.deepEqual(
    read.to!.map(({ address }) => address),
    ['Bob@there.invalid'],
  );
  const header = (name: string) => read.headers.find(({ key }) => key === name)!.value;
  t.is(header('x-for'), 'Bob');
  // As Anymail means it: nobody sees the others.
  const alone = ['cleo@there.invalid', 'dora@there.invalid'];
  await sdk(world).messages.create(domain, { ...mail, to: alone, 'recipient-variables': '{}' });
  t.is((await world.db('emails')).length, 4);
  t.is(header('list-unsubscribe'), '<https://sender.invalid/b>');
  await areSigned(t, world);
});

test('Mailgun: if the credits end in the middle, a repeat with the key sends to the others', async (t) => {
  const world = await startWorld(t, { tenant: { quota: 2 } });
  const to = ['ann@there.invalid', 'bob@there.invalid', 'cleo@there.invalid'];
  const body = (text: string) =>
    new URLSearchParams([
      ...Object.entries({ ...mail, text, 'recipient-variables': '{}' }).filter(([name]) => name !== 'to'),
      ...to.map((address): [string, string] => ['to', address]),
    ]);
  const call = (text = 'Hi') =>
    post(world, `${domain}/messages`, { body: body(text), headers: { 'idempotency-key': 'news' } });
  const { status, body: answer } = await call();
  t.is(status, 402);
  t.regex(answer.message, / 2 of 3 recipients were accepted before\.$/);
  await world.db.transaction((trx) => setQuota(trx, world.orgId, 10, world.clock.now()));
  t.is((await call()).status, 200);
  await until(async () => world.mx[0]!.messages.length === 3);
  t.deepEqual([...arrived(world).keys()].sort(), to);
  await areSigned(t, world);
  t.is((await call('Other')).status, 409);
});

/** Ghost sends its newsletters in batches of this size. */
const count = process.env.TEST_SLOW ? 1000 : 20;

/** As Ghost's newsletters do: sends in batches, reads events back page by page, and clears suppressions. */
test(`Mailgun: Ghost's client: ${count} recipients, their events, their suppressions`, async (t) => {
  const world = await startWorld(t);
  const client = sdk(world);
  const begin = world.clock.now() / 1000 - 1;
  const addresses = Array.from({ length: count }, (_, n) => `reader${n}@there.invalid`);
  const variables = addresses.map((address, n) => [
    address,
    { name: `Reader ${n}`, uuid: `u${n}`, list_unsubscribe: `https://sender.invalid/unsubscribe/u${n}` },
  ]);
  const answer = await client.messages.create(domain, {
    to: addresses,
    from: 'The Blog <app@sender.invalid>',
    'h:Reply-To': 'app@sender.invalid',
    'h:Sender': 'The Blog <app@sender.invalid>',
    subject: 'News',
    html: '<p>Hi %recipient.name%</p><a href="https://sender.invalid/?u=%recipient.uuid%">leave</a>',
    text: 'Hi %recipient.name%',
    'recipient-variables': JSON.stringify(Object.fromEntries(variables)),
    'h:List-Unsubscribe': '<%recipient.list_unsubscribe%>, <%tag_unsubscribe_email%>',
    'h:List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
    'h:Auto-Submitted': 'auto-generated',
    'v:email-id': '6743',
    'o:tag': ['bulk-email', 'ghost-email'],
    'o:tracking-opens': true,
  });
  t.is(answer.message, 'Queued. Thank you.');
  await until(async () => world.mx[0]!.messages.length === count);
  const last = arrived(world).get(addresses.at(-1)!)!.toString();
  t.true(last.includes(`Hi Reader ${count - 1}`));
  t.true(last.includes(`unsubscribe/u${count - 1}>`));
  await areSigned(t, world);

  const delivered = () => world.db('events').where({ type: 'email.delivered' });
  await until(async () => (await delivered()).length === count);
  const found = new Map<string, object>();
  const query = {
    limit: Math.min(300, count / 4),
    event: 'delivered OR opened OR failed OR unsubscribed OR complained',
    tags: 'bulk-email AND ghost-email',
    begin,
    end: world.clock.now() / 1000 + 60,
    ascending: 'yes',
  };
  const read = (more: object) => client.events.get(domain, { ...query, ...more } as never);
  let page = await read({});
  for (; page.items.length > 0; page = await read({ page: page.pages.next!.page }))
    for (const item of page.items) found.set(item.recipient, item);
  t.is(found.size, count);
  t.like(found.get(addresses[0]!), {
    event: 'delivered',
    recipient: addresses[0],
    tags: ['bulk-email', 'ghost-email'],
    'user-variables': { 'email-id': '6743' },
    'delivery-status': { code: 250 },
  });

  for (const [reason, list] of [
    ['hard bounce: unknown_user', 'bounces'],
    ['complaint', 'complaints'],
    ['manual', 'unsubscribes'],
  ] as const) {
    const change = { db: world.db, orgId: world.orgId, now: world.clock.now() };
    await suppressAddress(change, 'gone@there.invalid', reason);
    t.is((await client.suppressions.list(domain, list as 'bounces')).items.length, 1);
    t.like(await client.suppressions.get(domain, list, 'gone@there.invalid'), {
      address: 'gone@there.invalid',
    });
    const other = list === 'bounces' ? 'complaints' : 'bounces';
    t.like(await t.throwsAsync(client.suppressions.destroy(domain, other, 'gone@there.invalid')), {
      status: 404,
    });
    await client.suppressions.destroy(domain, list, 'gone@there.invalid');
    t.is((await client.suppressions.list(domain, list as 'bounces')).items.length, 0);
  }
});

test('Mailgun: events are found by time, in both directions, and by what they are about', async (t) => {
  const world = await startWorld(t, { zone: { 'gone.invalid': { MX: ['0 .'] } } });
  const { events, messages } = sdk(world);
  const start = world.clock.now();
  const id = async (change: object) => (await messages.create(domain, { ...mail, ...change })).id!;
  const first = await id({ 'o:tag': 'one' });
  await until(async () => world.mx[0]!.messages.length === 1);
  await world.clock.jump(3_600_000);
  await id({ to: 'bob@gone.invalid' });
  const types = async () => (await world.db('events').pluck('type')).sort();
  await until(
    async () => (await types()).includes('email.bounced') && (await types()).includes('email.delivered'),
  );
  const names = async (query: object) =>
    (await events.get(domain, query as never)).items.map(({ event }) => event);
  t.deepEqual(await names({ ascending: 'yes', event: 'delivered OR failed' }), ['delivered', 'failed']);
  t.deepEqual(await names({ event: 'delivered OR failed' }), ['failed', 'delivered']);
  t.deepEqual(await names({ begin: start / 1000 + 1800, event: 'delivered OR failed' }), ['failed']);
  t.deepEqual(await names({ end: start / 1000 + 1800, ascending: 'yes', event: 'delivered OR failed' }), [
    'delivered',
  ]);
  t.deepEqual(await names({ begin: start / 1000 + 1800, ascending: 'no', event: 'delivered' }), [
    'delivered',
  ]);
  t.deepEqual(await names({ tags: 'one', event: 'delivered' }), ['delivered']);
  t.deepEqual(await names({ tags: 'two' }), []);
  t.deepEqual(await names({ recipient: 'bob@gone.invalid', severity: 'permanent' }), ['failed']);
  t.deepEqual(await names({ 'message-id': first.slice(1, -1), event: 'delivered' }), ['delivered']);
  t.deepEqual(await names({ event: 'stored' }), []);
  const one = await events.get(domain, { limit: 1, event: 'delivered OR failed' } as never);
  const two = await events.get(domain, { page: one.pages.next!.page! });
  t.deepEqual(
    [one, two].map(({ items }) => items[0]!.event),
    ['failed', 'delivered'],
  );
  for (const query of [{ begin: 'someday' }, { limit: 0 }, { page: 'x' }])
    t.like(await t.throwsAsync(events.get(domain, query as never)), { status: 400 });
  t.like(await t.throwsAsync(events.get('other.invalid')), { status: 404 });
});

test('Mailgun: a later delivery, a test and what is refused', async (t) => {
  const world = await startWorld(t);
  const { messages } = sdk(world);
  const checked = await messages.create(domain, { ...mail, 'o:testmode': 'yes' });
  t.is(checked.message, 'Queued. Thank you.');
  const wrongKey = sdk(world, 'em_wrong').messages.create(domain, mail);
  t.like(await t.throwsAsync(wrongKey), { status: 401 });
  const refused = async (change: object, from = domain) => {
    const { status, details } = (await t.throwsAsync(
      messages.create(from, { ...mail, ...change } as never),
    )) as Error & { status: number; details: string };
    return `${status} ${details}`;
  };
  t.regex(await refused({}, 'other.invalid'), /^404 Domain not found: other\.invalid/);
  t.regex(await refused({ from: 'a@other.invalid' }), /^404 /);
  t.regex(await refused({ template: 'welcome' }), /^400 .*no templates/);
  t.regex(await refused({ to: 'nobody' }), /^400 to/);
  t.regex(await refused({ 'o:deliverytime': 'someday' }), /^400 o:deliverytime/);
  const late = { 'o:deliverytime': new Date(world.clock.now() + 60 * 86_400_000).toUTCString() };
  t.regex(await refused(late), /^400 o:deliverytime: must be in the future, at most 30 days ahead/);
  t.regex(await refused({ 'h:Subject': 'x' }), /^400 h\.Subject/);
  const many = Array.from({ length: 1001 }, (_, n) => `a${n}@there.invalid`);
  t.regex(await refused({ to: many }), /^400 .*1000/);
  t.is((await world.db('emails')).length, 0);
  t.is((await world.db('credit_entries').where('change', '<', 0)).length, 0);

  const at = Math.floor(world.clock.now() / 1000) * 1000 + 3_600_000;
  await messages.create(domain, { ...mail, 'o:deliverytime': new Date(at).toUTCString() });
  t.is((await world.db('emails').first()).scheduled_at, at);
});

test('Mailgun: forms are bounded, and broken ones are refused', async (t) => {
  const world = await startWorld(t);
  const path = `${domain}/messages`;
  const type = 'application/x-www-form-urlencoded';
  const sent = await post(world, path, {
    headers: { 'content-type': type },
    body: new URLSearchParams(mail),
  });
  t.is(sent.status, 200);
  t.is((await post(world, `${domain}//messages`, { body: new URLSearchParams(mail) })).status, 200);
  t.regex((await post(world, path, { body: '{}' })).text, /Content-Type/);
  t.is((await post(world, path, {})).status, 400);
  const multipart = 'multipart/form-data; boundary=b';
  const part = '--b\r\nContent-Disposition: form-data; name="to"\r\n\r\nann@there.invalid';
  const file = '--b\r\nContent-Disposition: form-data; name="attachment"; filename="a"\r\n\r\nhalf';
  const nameless = ['', '; filename="a"'].map(
    (more) => `--b\r\nContent-Disposition: form-data${more}\r\n\r\nx\r\n--b--`,
  );
  for (const body of [
    ...nameless,
    part,
    file,
    `${file}\r\n--b`,
    '--b--',
    'b',
    `${part}\r\n--b--`,
    '--b\r\n\r\n--b--',
  ])
    t.is((await post(world, path, { headers: { 'content-type': multipart }, body })).status, 400, body);
  const bare = await post(world, path, {
    headers: { 'content-type': 'multipart/form-data; x=y' },
    body: part,
  });
  // Issue 387 of Mailgun's SDK: a text that is sent without the name of a file.
  const text = await form(world, path, [...Object.entries(mail), ['attachment', 'check,this']] as [
    string,
    string,
  ][]);
  t.like(text, { status: 400 });
  t.regex(text.body.message, /^attachment: must be a file/);
  const late = await form(world, `${domain}/messages.mime`, [
    ['to', 'ann@there.invalid'],
    ['o:deliverytime', new Date(world.clock.now() + 60 * 86_400_000).toUTCString()],
    ['message', new Blob([`From: app@${domain}\r\nSubject: Hi\r\n\r\nHi`]), 'message.mime'],
  ]);
  t.regex(late.body.message, /^o:deliverytime: must be in the future/);
  t.regex(bare.body.message, /boundary/);
  const fields = Array.from({ length: 5000 }, (): [string, string] => ['o:tag', 'x']);
  t.regex((await form(world, path, fields)).body.message, /too many/);
  const empty = '--b\r\n\r\n'.repeat(100_000);
  const parts = await post(world, path, { headers: { 'content-type': multipart }, body: empty });
  t.regex(parts.body.message, /too many/);
  t.is((await world.db('emails')).length, 2);
});

const sendWhole = (world: World, message: string) =>
  form(world, `${domain}/messages.mime`, [
    ['to', 'Ann <ann@there.invalid>, bob@there.invalid'],
    ['o:tag', 'whole'],
    ['message', new Blob([message]), 'message.mime'],
  ]);

test.serial('Mailgun: two million bare line ends in a whole message stop nobody', async (t) => {
  const world = await startWorld(t);
  const bare = picture('mail/mailgun-whole').join('\n') + '\n'.repeat(2_000_000);
  let sent = 0;
  await stallsAtMost(t, 200, async () => {
    sent += 1;
    const { status, body } = await sendWhole(world, bare.replace('<whole@', `<bare${sent}@`));
    t.is(status, 200, JSON.stringify(body));
  });
});

test('Mailgun: a whole message is sent as it is', async (t) => {
  const world = await startWorld(t);
  const message = picture('mail/mailgun-whole').join('\r\n');
  const answer = await sendWhole(world, message);
  t.deepEqual(answer.body, { id: '<whole@sender.invalid>', message: 'Queued. Thank you.' });
  t.is((await sendWhole(world, message)).status, 200);
  const emails = await world.db('emails');
  t.is(emails.length, 1, 'a repeat with the same Message-ID is no second email');
  const email = await world.when(emails[0].id, ({ status }) => status === 'delivered');
  t.deepEqual(email.tags, { tag: 'whole' });
  t.is(arrived(world).size, 2);
  const raw = arrived(world).get('bob@there.invalid')!;
  t.true(raw.toString().endsWith(message));
  await areSigned(t, world);
  t.regex((await form(world, `${domain}/messages.mime`, [['to', 'a@b.invalid']])).body.message, /message/);
  const endless = await sendWhole(
    world,
    `From: App <app@sender.invalid>\r\nTo: a@b.invalid${',\r\n a@b.invalid'.repeat(20_000)}`,
  );
  t.is(endless.status, 400);
  t.regex(endless.body.message, /the header is too large/);
});

/** Symfony, and so Laravel, write tags and metadata so. */
test('Mailgun: options in the header of a whole message count, and are taken out of it', async (t) => {
  const world = await startWorld(t);
  const lines = picture('mail/mailgun-html');
  const options = [
    'X-Mailgun-Tag: news',
    'x-mailgun-tag: autumn',
    'X-Mailgun-Variables: {"plan": "pro",',
    ' "count": 3, "from": "header"}',
    'X-Mailgun-Track: no',
    'X-Mailgun-Track-Opens: yes',
    'X-Mailgun-Sending-Ip: 192.0.2.1',
  ];
  let sent = 0;
  const send = (more: string[], fields: [string, string][] = []) => {
    const message = [`Message-ID: <${++sent}@sender.invalid>`, ...more, ...lines].join('\r\n');
    const file: [string, Blob, string] = ['message', new Blob([message]), 'message.mime'];
    return form(world, `${domain}/messages.mime`, [['to', 'ann@there.invalid'], ...fields, file]);
  };
  const own: [string, string][] = [
    ['o:tag', 'own'],
    ['v:from', 'form'],
  ];
  t.is((await send(options, own)).status, 200);
  const { id } = await world.db('emails').first('id');
  const email = await world.when(id, ({ status }) => status === 'delivered');
  t.deepEqual(email.tags, { plan: 'pro', count: '3', from: 'form', tag: 'news,autumn,own' });
  t.deepEqual(email.tracking, { openTracking: true, clickTracking: false });
  const raw = arrived(world).get('ann@there.invalid')!;
  t.notRegex(raw.toString(), /x-mailgun/i);
  t.true(raw.includes('\r\nX-Odd:   spaces   stay\r\n'));
  await areSigned(t, world);

  t.is((await send(['X-Mailgun-Drop-Message: yes'])).status, 200);
  for (const [option, fault] of [
    ['X-Mailgun-Variables: [1]', /X-Mailgun-Variables: must be a JSON object/],
    ['X-Mailgun-Require-TLS: true', /o:require-tls/],
    ['X-Mailgun-Template-Name: welcome', /no templates/],
    ['X-Mailgun-Recipient-Variables: {"ann@there.invalid": {}}', /recipient-variables/],
    ['X-Mailgun-Deliver-By: someday', /o:deliverytime/],
  ] as const) {
    const answer = await send([option]);
    t.is(answer.status, 400, option);
    t.regex(answer.body.message, fault);
  }
  const withHeaders = { 'h:X-Mailgun-Variables': '{"plan":"pro"}', 'h:X-Mailgun-Tag': 'go' };
  await sdk(world).messages.create(domain, { ...mail, ...withHeaders, 'o:testmode': 'no' });
  const [, second] = await world.db('emails').orderBy('id').pluck('tags');
  t.deepEqual(JSON.parse(second), { plan: 'pro', tag: 'go' });
  t.is((await world.db('emails')).length, 2);
});

test('Mailgun: addresses are added to the lists of suppressions, one or several', async (t) => {
  const world = await startWorld(t);
  const { suppressions } = sdk(world);
  const bounce = { address: 'Ann@there.invalid', code: 550, error: 'No such\r\nmailbox' };
  t.is(
    (await suppressions.create(domain, 'bounces', bounce as never)).message,
    '1 addresses have been added to the bounces table',
  );
  await suppressions.create(domain, 'complaints', { address: 'bob@there.invalid' } as never);
  const one = { address: 'cleo@there.invalid', tag: 'news' };
  const single = await suppressions.create(domain, 'unsubscribes', one as never);
  t.is(single.message, 'Address has been added to the unsubscribes table');
  const many = Array.from({ length: 3 }, (_, n) => ({ address: `n${n}@there.invalid`, tags: ['*'] }));
  const several = await suppressions.create(domain, 'unsubscribes', many as never);
  t.is(several.message, '3 addresses have been added to the unsubscribes table');
  t.like(await suppressions.get(domain, 'bounces', 'ann@there.invalid'), {
    address: 'Ann@there.invalid',
    code: 550,
    error: 'No such mailbox',
  });
  t.like(await suppressions.get(domain, 'complaints', 'bob@there.invalid'), { address: 'bob@there.invalid' });

  const addresses: string[] = [];
  const next = ({ pages }: typeof page) =>
    suppressions.list(domain, 'unsubscribes', { page: pages.next!.page! });
  let page = await suppressions.list(domain, 'unsubscribes', { limit: 3 });
  for (; page.items.length > 0; page = await next(page))
    addresses.push(...page.items.map((item) => (item as { address: string }).address));
  t.deepEqual(addresses, ['cleo@there.invalid', ...many.map(({ address }) => address)]);
  const back = await suppressions.list(domain, 'unsubscribes', { page: '?page=previous' } as never);
  t.deepEqual(back.items, [], 'nothing is before the first');

  const refused = [{ address: 'nobody' }, [], [{ address: 'x@y.invalid' }, {}], Array(1001).fill(one)];
  for (const data of refused) {
    const error = await t.throwsAsync(suppressions.create(domain, 'bounces', data as never));
    t.like(error, { status: 400 }, JSON.stringify(data).slice(0, 100));
  }
  t.is((await world.db('suppressions')).length, 6);
  const { status } = await messageTo(world, 'bob@there.invalid');
  t.is(status, 'suppressed');
});

async function messageTo(world: World, to: string) {
  await sdk(world).messages.create(domain, { ...mail, to });
  const { email_id: id } = await world.db('deliveries').where({ recipient: to }).first('email_id');
  return world.get(id);
}

test('Mailgun: each class of error has its status and a message, and nothing is stored or charged', async (t) => {
  const world = await startWorld(t, { tenant: { quota: 0 } });
  const { db, orgId } = world;
  const failed = async (call: Promise<unknown>) =>
    (await t.throwsAsync(call)) as Error & { status: number; details: string };
  const create = (client = sdk(world), change = {}) =>
    client.messages.create(domain, { ...mail, ...change } as never);
  const expected: [call: () => Promise<unknown>, status: number, details: RegExp][] = [
    [() => create(sdk(world, 'em_wrong')), 401, /^Forbidden$/],
    [() => create(), 402, /credits/],
    [() => create(undefined, { from: 'a@other.invalid' }), 404, /other\.invalid/],
    [() => sdk(world).domains.list(), 404, /does not have/],
    [() => sdk(world).suppressions.get(domain, 'bounces', 'nobody@there.invalid'), 404, /no such/i],
    [() => create(undefined, { subject: undefined }), 400, /subject/],
    [
      () => create(undefined, { attachment: { data: Buffer.alloc(21 * 1024 * 1024), filename: 'a' } }),
      413,
      /20 MiB/,
    ],
  ];
  for (const [call, status, details] of expected) {
    const error = await failed(call());
    t.is(error.status, status);
    t.regex(error.details, details);
  }
  const clientWith = async (scope: string) =>
    sdk(world, (await makeKey(db, { orgId, label: scope, scopes: [scope] }, world.clock.now())).key);
  t.is((await failed(create(await clientWith('email:read')))).status, 403);
  await db('organizations').where({ id: orgId }).update({ requests_per_second: 0 });
  // A new key, because those in use are cached with the limits.
  const limited = await failed(create(await clientWith('email:send')));
  t.is(limited.status, 429);
  t.is((await db('emails')).length, 0);
});
