/** Webhooks: an endpoint is added, tested, told, replayed, disabled and enabled, its secret shown once. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { parseFragment } from 'parse5';
import { createBrowser, setUp } from '#lab/browser/browser.ts';
import { startReceiver } from '#lab/scenes/webhook-receiver.ts';
import { startWebhookWorld } from '#lab/scenes/webhook-world.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

async function arrive(t: ExecutionContext) {
  const made = await startWebhookWorld(t);
  const browser = createBrowser(made.world);
  await setUp(browser, made.world);
  return { ...made, browser, base: `/dashboard/o/${made.orgId}/webhooks` };
}

const secretIn = (html: string) => /whsec_[\w+/]+=*/.exec(html.replaceAll('&#x2F;', '/'))?.[0];

test('an endpoint is added with a secret that is shown once, tested, told and replayed', async (t) => {
  const { world, browser, base } = await arrive(t);
  const receiver = await startReceiver(t, { now: world.clock.now });
  await browser.get(base);
  const made = await browser.submit('/webhooks', {
    url: receiver.url,
    which: 'some',
    events: ['email.delivered'],
  });
  receiver.secret = secretIn(made.html)!;
  const list = await browser.get(base);
  t.is(secretIn(list.html), undefined);
  t.regex(list.text, /\/hook Active 1 type/);
  const page = /href="([^"]+)">http:/.exec(list.html)![1]!;

  await browser.get(page);
  t.regex((await browser.submit('/test')).text, /accepted the test: HTTP 204/);
  t.is(receiver.requests[0]!.body.type, 'webhook.test');
  t.is(receiver.requests[0]!.fault, null, 'the secret on the page signs');
  receiver.answer = (_, response) => response.writeHead(500).end('<b>broken</b>');
  const failed = await browser.submit('/test');
  t.regex(failed.text, /The test failed: HTTP 500/);
  t.regex(
    failed.text,
    /Failed webhook\.test HTTP 500, 1 attempt just now Delivered webhook\.test HTTP 204, 1 attempt just now/,
  );
  const told = await browser.get(/href="([^"]+\/events\/[^"]+)"/.exec(failed.html)![1]!);
  t.regex(told.text, /Attempt 1 500 just now , took \d+ ms <b>broken<\/b>/);
  t.false(told.html.includes('<b>broken'));

  receiver.answer = (_, response) => response.writeHead(200).end('thanks');
  const { body } = await world.send({ to: 'ann@there.invalid' });
  await world.when(body.emailId, ({ status }) => status === 'delivered');
  await receiver.received(3);
  await until(async () => {
    const now = await browser.get(page);
    return [/Delivered email\.delivered .* HTTP 200, 1 attempt/, /No events are waiting/].every((one) =>
      one.test(now.text),
    );
  });
  t.regex(browser.page().text, /Delivered email\.delivered ann@there\.invalid/, 'a row names its recipient');
  await browser.get(`${page}/events/${receiver.requests[2]!.id}`);
  t.true(browser.page().html.includes(`/emails/${body.emailId}"`), 'and leads to its email');
  t.regex(
    (await browser.submit('/replay', { event: receiver.requests[2]!.id })).text,
    /One event is being replayed/,
  );
  await world.clock.passUntil(() => receiver.requests.length === 4);
  t.is(receiver.requests[3]!.id, receiver.requests[2]!.id);
  // What is being told is not told once more for the asking.
  await until(async () => /No events are waiting/.test((await browser.get(page)).text));
  t.regex(
    (await browser.post(`${page}/replay`, { _csrf: browser.csrf(), hours: '1' })).text,
    /One event is being replayed/,
  );
  await world.clock.passUntil(() => receiver.requests.length === 5);
  t.is((await browser.post(`${page}/replay`, { _csrf: browser.csrf(), hours: '2' })).status, 422);
});

test('a rotated secret signs beside the old one; events, standing and end are as the API has them', async (t) => {
  const { world, browser, base, endpoint } = await arrive(t);
  const { receiver, id } = await endpoint();
  const webhook = async () => (await world.call('GET', `/api/public/webhooks/${id}`)).body.webhook;
  const page = `${base}/${id}?tab=settings`;
  await browser.get(page);
  const secret = secretIn((await browser.submit('/rotate')).html)!;
  t.not(secret, receiver.secret);
  await browser.get(page);
  await browser.submit('/test');
  t.is(receiver.requests[0]!.fault, null, 'the old one');
  receiver.secret = secret;
  await browser.submit('/test');
  t.is(receiver.requests[1]!.fault, null, 'the new one');

  await browser.get(page);
  t.regex((await browser.submit('/events', { which: 'some' })).text, /Select at least one/);
  await browser.get(page);
  await browser.submit('/events', { which: 'some', events: ['email.bounced', 'email.opened'] });
  t.deepEqual((await webhook()).events, ['email.bounced', 'email.opened']);
  await browser.submit('/events', { which: 'all' });
  t.deepEqual((await webhook()).events, []);
  t.regex((await browser.submit('/disable')).text, /nothing is posted to it\. Reason: Disabled by hand/);
  t.is((await webhook()).status, 'disabled');
  await browser.submit('/enable');
  t.is((await webhook()).status, 'active');
  t.regex((await browser.submit('/remove')).text, /No endpoints yet/);
  t.is((await world.call('GET', `/api/public/webhooks/${id}`)).status, 404);
});

test('what is wrong with a URL or the choice of events is said at the field', async (t) => {
  const world = await startWorld(t);
  const browser = createBrowser(world);
  await setUp(browser, world);
  const [{ id }] = await world.db('organizations').select('id');
  await browser.get(`/dashboard/o/${id}/webhooks`);
  for (const [url, fault] of [
    ['ftp://x', /"ftp:\/\/x" is not a URL/],
    ['https://127.0.0.1/hook', /127\.0\.0\.1 is a private or special address/],
    ['https://me:secret@app.invalid/', /has a user name or password/],
  ] as const) {
    const answer = await browser.submit('/webhooks', { url, which: 'some' });
    t.is(answer.status, 422);
    t.regex(answer.text, fault);
    t.regex(answer.html, /field wrong">\s*<label for="field-url"/);
    t.regex(answer.text, /Select at least one/);
  }
  t.is((await world.db('webhooks')).length, 0);
});

test('events are filtered by state and type, and one is shown as it is posted: signed, as curl, with its email', async (t) => {
  const { world, browser, base, endpoint } = await arrive(t);
  const { receiver, id } = await endpoint();
  const page = `${base}/${id}`;
  const { body } = await world.send({ to: 'ann@there.invalid', subject: "it's" });
  await world.when(body.emailId, ({ status }) => status === 'delivered');
  await world.clock.passUntil(() => receiver.accepted().length >= 2);
  receiver.answer = (_, response) => response.writeHead(500).end();
  await browser.get(page);
  await browser.submit('/test');
  const shown = async (search: string) => {
    const { html } = await browser.get(`${page}?${search}`);
    return [...html.matchAll(/id="event-[^>]+>([^<]+)</g)].map(([, type]) => type);
  };
  await until(async () => (await shown('state=delivered')).length >= 2);
  t.true((await shown('')).includes('webhook.test'));
  t.deepEqual(await shown('state=failed'), ['webhook.test']);
  t.deepEqual(await shown('state=delivered&type=email.delivered'), ['email.delivered']);
  t.deepEqual(await shown('state=open'), []);
  t.regex(browser.page().text, /Nothing found/);
  t.true((await shown('state=nonsense&type=nonsense')).length >= 3);
  t.is((await browser.get(`${page}?after=x`)).status, 404);

  const list = await browser.get(`${page}?type=email.delivered`);
  const link = /href="([^"]+\/events\/[^"]+)"/.exec(list.html)![1]!;
  const event = await browser.get(link);
  t.regex(event.text, /email\.delivered Delivered Event .* Show the email/);
  t.true(event.html.includes(`/emails/${body.emailId}"`));
  t.regex(event.text, /webhook-signature v1,[\w+/=]+ .*"subject": "it's"/);
  const copied = parseFragment(/<button[^>]+data-copy="curl [^"]+">/.exec(event.html)![0]).childNodes[0] as {
    attrs: { name: string; value: string }[];
  };
  const curl = copied.attrs.find(({ name }) => name === 'data-copy')!.value;
  receiver.answer = (_, response) => response.writeHead(204).end();
  const before = receiver.requests.length;
  await promisify(execFile)('sh', ['-c', curl]);
  t.is(receiver.requests.length, before + 1);
  t.is(receiver.requests.at(-1)!.fault, null, 'the copied command posts what verifies');
  await browser.get(link);
  t.regex((await browser.submit('/replay')).text, /One event is being replayed/);

  await world.db('events').where({ email_id: body.emailId }).delete();
  t.regex((await browser.get(link)).text, /The event has been deleted/);
  t.is((await browser.get(`${page}/events/${body.emailId}`)).status, 404);
});
