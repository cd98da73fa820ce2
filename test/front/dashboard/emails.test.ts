/** Emails: each filter, page by page; one email with what it holds; once more, no more; nobody else's. */
import test, { type ExecutionContext } from 'ava';
import { parse } from 'csv-parse/sync';
import { sentAgain } from '#front/dashboard/pages/email/resend.ts';
import { createBrowser, setUp } from '#lab/browser/browser.ts';
import { asNewTenant, startWorld, type World, type WorldOptions } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { findEmail, readSources } from '#mail/record/rows/emails.ts';
import { removeMessages } from '#mail/record/rows/retention.ts';

async function begin(t: ExecutionContext, options: WorldOptions = {}) {
  const world = await startWorld(t, options);
  const browser = createBrowser(world);
  await setUp(browser, world);
  const base = `/dashboard/o/${(await world.db('organizations').first('id')).id}`;
  const send = async (fields: object) =>
    (await world.send({ to: 'ann@there.invalid', ...fields })).body.emailId as string;
  return { world, browser, base, send };
}

const delivered = (world: World, id: string) => world.when(id, ({ status }) => status === 'delivered');

const subjects = (html: string) =>
  [...html.matchAll(/<p class="one-line quiet"><bdi>([^<]*)</g)].map(([, subject]) => subject);

test('each filter finds what it says; what is not looked through yet is said', async (t) => {
  const { world, browser, base, send } = await begin(t, {});
  const one = await send({ subject: 'First receipt', tags: { order: '4711' } });
  await delivered(world, one);
  world.mx[0]!.script = { rcpt: () => '550 5.1.1 unknown' };
  const two = await send({
    subject: 'Zweite Quittung',
    to: ['bob@there.invalid'],
    from: 'Other <other@sender.invalid>',
  });
  await world.when(two, ({ status }) => status === 'bounced');
  const found = async (query: string) => subjects((await browser.get(`${base}/emails?${query}`)).html);
  t.deepEqual(await found(''), ['Zweite Quittung', 'First receipt']);
  t.deepEqual(await found('to=ANN@'), ['First receipt']);
  t.deepEqual(await found('subject=QUITT'), ['Zweite Quittung']);
  t.deepEqual(await found('from=other'), ['Zweite Quittung']);
  t.deepEqual(await found('tag=order%3D4711'), ['First receipt']);
  t.deepEqual(await found('tag=4711'), ['First receipt']);
  t.deepEqual(await found('tag=order%3D1'), []);
  t.deepEqual(await found('status=bounced'), ['Zweite Quittung']);
  t.deepEqual(await found('status=nonsense&within=nonsense&since=x'), ['Zweite Quittung', 'First receipt']);
  t.is((await found('within=1h')).length, 2);
  t.deepEqual(await found('until=2020-01-01'), []);
  t.is((await found('since=2020-01-01')).length, 2);
  t.deepEqual(await found(`after=${two}`), ['First receipt']);
  t.is((await browser.get(`${base}/emails?after=x`)).status, 404);
  t.regex((await browser.get(`${base}/emails?subject=nothing`)).text, /Nothing found/);

  // The live part: nothing where nothing is new.
  const live = /hx-get="([^"]+)"/
    .exec((await browser.get(`${base}/emails`)).html)![1]!
    .replaceAll('&amp;', '&');
  t.is((await browser.ask('GET', live)).status, 204);
  world.mx[0]!.script = {};
  await send({ subject: 'Third' });
  const news = await browser.ask('GET', live);
  t.is(subjects(news.html)[0], 'Third');
  t.notRegex(news.html, /<html/);
});

test('pages by key, and a long way through what is not wanted', async (t) => {
  const { world, browser, base, send } = await begin(t, {});
  const id = await send({ subject: 'Needle' });
  const [email, delivery] = [
    await world.db('emails').where({ id }).first(),
    await world.db('deliveries').where({ email_id: id }).first(),
  ];
  const later = (index: number, kind: number) =>
    `${id.slice(0, 8)}-ffff-7${kind}00-8000-${index.toString(16).padStart(12, '0')}`;
  const copies = Array.from({ length: 2100 }, (_, index) => later(index, 0));
  await world.db.batchInsert(
    'emails',
    copies.map((each, at) => ({ ...email, id: each, subject: `Hay ${at}` })),
    50,
  );
  await world.db.batchInsert(
    'deliveries',
    copies.map((each, at) => ({
      ...delivery,
      id: later(at, 1),
      email_id: each,
      recipient: 'hay@there.invalid',
      status: 'delivered',
      lease_owner: null,
      due_at: null,
    })),
    30,
  );
  const first = await browser.get(`${base}/emails`);
  t.is(subjects(first.html)[0], 'Hay 2099');
  t.is(subjects(first.html).length, 50);
  const older = /id="next-page" href="([^"]+)"/.exec(first.html)![1]!.replaceAll('&amp;', '&');
  t.is(subjects((await browser.get(older)).html)[0], 'Hay 2049');

  const search = await browser.get(`${base}/emails?to=ann`);
  t.deepEqual(subjects(search.html), []);
  t.regex(search.text, /Searched emails back to 2\d{3}-/);
  const on = /hx-get="([^"]+part=rows)"/.exec(search.html)![1]!.replaceAll('&amp;', '&');
  const rows = await browser.ask('GET', on);
  t.deepEqual(subjects(rows.html), ['Needle']);
  t.notRegex(rows.html, /<html|Searched emails/);
});

test(`one email is told whole, sent again without the first one's tracking, and canceled`, async (t) => {
  const { world, browser, base, send } = await begin(t, {});
  const id = await send({
    html: '<p>Look <a href="https://there.invalid/?a=1&amp;b=2">here</a><img src="cid:a%25b"></p>',
    tracking: { openTracking: true, clickTracking: true },
    attachments: [
      { filename: 'a <b>.txt', content: Buffer.from('attached').toString('base64') },
      { filename: 'logo.png', content: 'iVBORw0KGgo=', contentId: 'a%b' },
      { filename: 'invite.ics', content: 'aGk=', contentType: 'text/calendar; method=REQUEST' },
    ],
  });
  await delivered(world, id);
  const url = `${base}/emails/${id}`;
  const page = await browser.get(url);
  t.regex(page.text, /250 2\.0\.0 .*That host is now responsible for the message/);
  t.regex(page.text, /MAIL FROM:<b-.*a <b>\.txt/s);
  const preview = await browser.get(`${url}/preview`);
  t.regex(preview.html, /href="https:\/\/there\.invalid\/\?a=1&amp;b=2"/);
  t.regex(preview.html, /<img src="data:image\/png;base64,iVBORw0KGgo=">/);
  t.regex(page.text, /logo\.png image\/png, \d bytes, inline/);
  t.regex(page.text, /invite\.ics application\/ics/);
  t.notRegex(page.text, /\(no name\)/, 'the invitation is listed once');
  t.notRegex(preview.html, /\/t\/[oc]\//, 'looking at it is neither an open nor a click');
  const [raw] = await readSources(world.db, id);
  const source = await browser.ask('GET', `${url}/source`);
  t.is(source.html, raw!.toString());
  t.is(source.headers.get('content-type'), 'message/rfc822');
  t.regex(source.headers.get('content-disposition')!, /^attachment; filename="[\w-]+\.eml"$/);

  world.mx[0]!.script = { rcpt: () => '451 4.7.1 later' };
  await browser.get(url);
  const { action, fields } = browser.page().forms.find((form) => form.action.endsWith('/resend'))!;
  const again = await browser.post(action, Object.fromEntries(fields));
  const secondId = again.path.split('/').at(-1)!;
  t.regex(again.text, /was sent again/);
  t.not(secondId, id);
  const twice = await browser.post(action, Object.fromEntries(fields));
  t.is(twice.path, again.path, 'the same form sends once');
  const second = await world.when(secondId, ({ status }) => status === 'deferred');
  t.is(second.credits, 1);
  t.not(second.id, (await world.get(id)).id);
  const bytes = (await readSources(world.db, secondId))[0]!.toString();
  t.is(bytes.match(/^DKIM-Signature:/gim)!.length, 1);
  t.is(bytes.match(/^Message-ID:/gim)!.length, 1);
  const html = (await browser.get(`${base}/emails/${secondId}/preview`)).html;
  t.regex(html, /href="https:\/\/there\.invalid\/\?a=1&amp;b=2"/, 'its links are tracked once');

  await browser.get(`${base}/emails/${secondId}`);
  t.regex(
    browser.page().text,
    /said "451 4\.7\.1 later" at attempt 1\. That is not final.*next attempt is due/,
  );
  const canceled = await browser.submit('/cancel');
  t.regex(canceled.text, /Canceled for one recipient.*by Olga Operator in the dashboard/);
  t.is((await world.get(secondId)).status, 'canceled');
  t.regex(
    (await browser.post(`${base}/emails/${secondId}/cancel`, { _csrf: browser.csrf() })).text,
    /nothing left to cancel/,
  );
});

test('a scheduled email is shown, moved and canceled', async (t) => {
  const { world, browser, base, send } = await begin(t, {});
  const at = (hours: number) => new Date(world.clock.now() + hours * 3_600_000).toISOString();
  const id = await send({ scheduledAt: at(2), expiresAfter: 600 });
  const listed = await browser.get(`${base}/emails?status=scheduled`);
  t.regex(listed.text, /Scheduled ann@there\.invalid Hello/);
  const page = await browser.get(`${base}/emails/${id}`);
  t.regex(
    page.text,
    /Scheduled \(in progress\) in 2 hours.*It is scheduled for .* It expires .*Accepted and scheduled/s,
  );
  const moved = await browser.submit('/move', { at: at(5).slice(0, 16) });
  t.regex(moved.text, /The email is now scheduled for/);
  t.is((await world.get(id)).scheduledAt, `${at(5).slice(0, 16)}:00.000Z`);
  for (const wrong of [at(-1).slice(0, 16), 'soon', '']) {
    await browser.get(`${base}/emails/${id}`);
    t.regex((await browser.submit('/move', { at: wrong })).text, /Choose a time in the future/, wrong);
  }
  await browser.get(`${base}/emails/${id}`);
  t.regex((await browser.submit('/cancel')).text, /Canceled for one recipient/);
  t.like(await world.get(id), { status: 'canceled', credits: 0 });
  t.notRegex((await browser.get(`${base}/emails/${id}`)).text, /Reschedule/);
});

test('sent again, an email keeps each field that its record says it keeps, and its lifetime', async (t) => {
  const { world, browser, base, send } = await begin(t, {});
  world.mx[0]!.script = { rcpt: () => '451 4.7.1 later' };
  const id = await send({
    replyTo: 'answers@sender.invalid',
    tags: { order: '4711' },
    tracking: { openTracking: true, clickTracking: false },
    headers: { 'TLS-Required': 'No' },
    expiresAfter: 600,
  });
  await browser.get(`${base}/emails/${id}`);
  const again = await browser.submit('/resend');
  const secondId = again.path.split('/').at(-1)!;
  const [first, second] = await Promise.all([id, secondId].map((one) => findEmail(world.db, one, null)));
  for (const field of Object.keys(sentAgain) as (keyof typeof sentAgain)[])
    if (sentAgain[field] !== null) t.deepEqual(second![field], first![field], field);
  const lifetimes = [first!, second!].map(
    ({ deliveries, createdAt }) => deliveries[0]!.expiresAt - createdAt,
  );
  t.deepEqual(lifetimes, [600_000, 600_000]);
});

test('sent again, an email unsubscribes the person who got it, and not the one whose copy it was', async (t) => {
  const { world, browser, base, send } = await begin(t, {});
  await world.call('POST', '/api/public/streams', { body: '{"name":"news","kind":"subscribed"}' });
  const id = await send({ to: ['ann@there.invalid', 'ben@there.invalid'], stream: 'news' });
  await delivered(world, id);
  await browser.get(`${base}/emails/${id}`);
  await browser.submit('/resend');
  const { messages } = world.mx[0]!;
  await until(() => messages.length === 4, { what: 'four copies' });
  const [again] = messages.slice(2).filter(({ to }) => to.includes('ben@there.invalid'));
  const raw = again!.raw.toString().replaceAll(/\r\n[ \t]+/g, '');
  t.is(raw.match(/^List-Unsubscribe-Post:/gm)?.length, 1);
  const { pathname } = new URL(/^List-Unsubscribe: ?<(http[^>]+)>/m.exec(raw)![1]!);
  const form = new URLSearchParams({ 'List-Unsubscribe': 'One-Click' });
  t.is((await fetch(new URL(pathname, world.url()), { method: 'POST', body: form })).status, 200);
  t.deepEqual(await world.db('suppressions').pluck('address'), ['ben@there.invalid']);
});

test('an email whose content was deleted is shown without it, and not sent again', async (t) => {
  const { world, browser, base, send } = await begin(t, {});
  const id = await send({ html: '<p>Hello</p>' });
  await delivered(world, id);
  await removeMessages(world.db, () => world.clock.now() + 86_400_000, 0)();
  const page = await browser.get(`${base}/emails/${id}`);
  t.regex(page.text, /The content has been deleted/);
  t.is((await browser.get(`${base}/emails/${id}/preview`)).status, 404);
  const csrf = (await browser.get(`${base}/emails/${id}`)) && browser.csrf();
  t.regex((await browser.post(`${base}/emails/${id}/resend`, { _csrf: csrf })).text, /cannot be sent again/);
});

test('the preview is a sandbox of its own, and loads nothing unless asked', async (t) => {
  const { world, browser, base, send } = await begin(t);
  const id = await send({ html: '<p>Hi</p>', cc: 'carl@there.invalid', bcc: ['eve@there.invalid'] });
  await delivered(world, id);
  const policyOf = async (query: string) =>
    (await browser.ask('GET', `${base}/emails/${id}/preview${query}`)).headers.get(
      'content-security-policy',
    )!;
  const policy =
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'; frame-ancestors 'self'; sandbox; img-src ";
  t.is(await policyOf(''), `${policy}data:`);
  t.is(await policyOf('?images=1'), `${policy}data: https: http:`);
  // A browser would look up the names in links, which tells the sender that the mail is being read.
  const { headers } = await browser.ask('GET', `${base}/emails/${id}/preview`);
  t.is(headers.get('x-dns-prefetch-control'), 'off');
  const page = await browser.get(`${base}/emails/${id}`);
  t.regex(page.html, /<iframe class="preview" sandbox=""\s/);
  t.regex(page.headers.get('content-security-policy')!, /frame-src 'self'/);
  for (const [list, address] of [
    ['Cc', 'carl@there.invalid'],
    ['Bcc', 'eve@there.invalid'],
  ]) {
    t.regex(
      page.html,
      new RegExp(`<dt>${list}</dt>\\s*<dd>\\s*<bdi class="block">${address}`),
      'in the details',
    );
    t.regex(
      page.html,
      new RegExp(`<bdi>${address}</bdi>\\s*<span class="quiet small">${list}<`),
      'at its delivery',
    );
  }
});

test('a test goes the way of the API: its faults at their fields, its suppressions, its credits', async (t) => {
  const { world, browser, base } = await begin(t, { tenant: { quota: 1 } });
  const form = await browser.get(`${base}/send-test`);
  t.regex(form.html, /value="olga@postern\.invalid"/);
  const submit = (fields: Record<string, string>) =>
    browser.submit('', { domain: 'sender.invalid', ...fields });
  const wrong = await submit({ to: 'nobody', subject: '', local: 'a b', html: '', text: '' });
  t.is(wrong.status, 422);
  for (const id of ['to', 'subject', 'local']) t.regex(wrong.html, new RegExp(`id="field-${id}-error"`), id);
  t.regex(
    (
      await submit({
        domain: 'foreign.invalid',
        to: 'ann@there.invalid',
        subject: 'x',
        local: 'test',
        text: 'x',
      })
    ).text,
    /foreign\.invalid is not registered/,
  );
  const orgId = base.split('/').at(-1)!;
  await world.db('suppressions').insert({
    id: crypto.randomUUID(),
    org_id: orgId,
    address: 'bob@there.invalid',
    address_key: 'bob@there.invalid',
    reason: 'manual',
    created_at: Date.now(),
  });
  t.regex((await submit({ to: 'bob@there.invalid' })).text, /bob@there\.invalid is on the suppression list/);
  t.is((await world.db('emails')).length, 0);

  const sent = await submit({ to: 'ann@there.invalid' });
  t.regex(sent.text, /The test email was accepted/);
  await delivered(world, sent.path.split('/').at(-1)!);
  const row = await world.db('emails').first();
  t.is(row.key_id, null);
  t.is(row.credits, 1);
  await browser.get(`${base}/send-test`);
  t.regex(
    (await submit({ to: 'ann@there.invalid' })).text,
    /Neither the quota nor the wallet has credits left/,
  );
});

test('an email is found by its id, the id of a delivery, its Message-ID or a part of either, in its organization only', async (t) => {
  const { world, browser, base } = await begin(t);
  const { body } = await world.send({ to: 'ann@there.invalid', subject: 'found' });
  await world.send({ to: 'bob@there.invalid', subject: 'other' });
  const email = await world.db('emails').where({ id: body.emailId }).first();
  const delivery = await world.db('deliveries').where({ email_id: body.emailId }).first();
  const found = (id: string) => browser.get(`${base}/emails?to=&id=${encodeURIComponent(id)}`);
  for (const name of [
    body.emailId,
    body.emailId.toUpperCase(),
    delivery.id,
    email.message_id,
    `<${email.message_id}> `,
  ])
    t.is((await found(name)).path, `${base}/emails/${body.emailId}`, name);
  for (const part of [body.emailId.slice(-8), email.message_id.slice(0, 12)])
    t.regex((await found(part)).text, /Email ID or Message-ID .*ann@there\.invalid found/);
  t.notRegex(browser.page().text, /bob@there/);
  t.regex((await found('nonsense')).text, /Nothing found/);

  const other = await asNewTenant(world);
  const foreign = await other.send({ to: 'eve@there.invalid', from: 'a@sender.invalid' });
  t.truthy(foreign.body.emailId);
  t.regex((await found(foreign.body.emailId)).text, /Nothing found/);
});

test('the emails that were found are exported: a row a recipient, times in UTC, no formulas', async (t) => {
  const { world, browser, base } = await begin(t);
  const subject = '=cmd|"/c calc"!A1';
  const first = await world.send({
    to: ['ann@there.invalid', 'bob@there.invalid'],
    subject,
    tags: { order: '+1', big: '' },
  });
  await world.send({ to: 'carl@there.invalid', subject: 'other' });
  await world.when(first.body.emailId, ({ status }) => status === 'delivered');
  const page = await browser.get(`${base}/emails?subject=cmd`);
  const link = /href="([^"]+\/export[^"]*)"/.exec(page.html)![1]!;
  const { headers, html: csv } = await browser.ask('GET', link);
  t.is(headers.get('content-type'), 'text/csv; charset=utf-8');
  t.is(headers.get('content-disposition'), 'attachment; filename="emails.csv"');
  const [head, ...rows] = parse(csv) as string[][];
  t.deepEqual(head, [
    'emailId',
    'createdAt',
    'from',
    'recipient',
    'kind',
    'status',
    'subject',
    'tags',
    'messageId',
  ]);
  const { created_at: createdAt, message_id: messageId } = await world
    .db('emails')
    .where({ id: first.body.emailId })
    .first();
  const row = (address: string) => [
    first.body.emailId,
    new Date(createdAt).toISOString(),
    'App <app@sender.invalid>',
    address,
    'to',
    'delivered',
    `'${subject}`,
    'order=+1 big',
    messageId,
  ];
  t.deepEqual(rows, [row('ann@there.invalid'), row('bob@there.invalid')]);
  const all = parse((await browser.ask('GET', `${base}/emails/export`)).html) as string[][];
  t.deepEqual(
    all.slice(1).map(([, , , address]) => address),
    ['carl@there.invalid', 'ann@there.invalid', 'bob@there.invalid'],
  );
});
