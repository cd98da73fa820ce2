import test from 'ava';
import { setDomainTracking } from '#accounts/rows/domains-table.ts';
import { cliOf } from '#lab/cli.ts';
import { verifyDkim } from '#lab/dkim.ts';
import { partOf } from '#lab/mail.ts';
import type { MxMessage } from '#lab/mx/mx-script.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

const html = `<html><body>
<p>Hello <a href="https://app.invalid/go?a=1&amp;b=2">go</a> or
<a href="http://app.invalid/other">other</a>, <a href="mailto:help@app.invalid">write</a>,
<a href="https://app.invalid/quiet" data-postern-no-track>quietly</a></p>
</body></html>`;
const text = 'Hello https://app.invalid/go?a=1&b=2';
const target = 'https://app.invalid/go?a=1&b=2';
const on = { openTracking: true, clickTracking: true };
const chrome =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36';

/** A person's browser, unless told otherwise. */
const visit = (url: string, headers: Record<string, string> = {}, method = 'GET') =>
  fetch(url, { method, redirect: 'manual', headers: { 'user-agent': chrome, ...headers } });

const unescaped = (attribute: string) => attribute.replaceAll('&amp;', '&');

/** The pixel and the links of a message, as a mail program finds them. */
function linksOf(message: MxMessage) {
  const body = partOf(message.raw, 'text/html');
  return {
    body,
    pixel: unescaped(/<img src="([^"]+\/t\/o\/[^"]+)"/.exec(body)?.[1] ?? ''),
    clicks: [...body.matchAll(/<a href="([^"]+\/t\/c\/[^"]+)"/g)].map(([, url]) => unescaped(url!)),
  };
}

/** Sends to ann and bob; their mails, delivered. */
async function sendToTwo(world: World, fields: object = {}) {
  const before = world.mx[0]!.messages.length;
  const to = ['ann@there.invalid', 'bob@there.invalid'];
  const { body } = await world.send({ to, html, text, tracking: on, ...fields });
  const messages = (await world.mx[0]!.received(before + 2)).slice(before);
  await world.when(body.emailId, ({ status }) => status === 'delivered');
  await world.clock.advance('10s');
  const to1 = (name: string) => messages.find((message) => message.to[0]!.startsWith(name))!;
  return { emailId: body.emailId as string, ann: to1('ann'), bob: to1('bob') };
}

/** Turns the domain's tracking on or off, by the means of the command line. */
async function setTracking(world: World, tracking: Parameters<typeof setDomainTracking>[2]) {
  const [{ id }] = await world.db('domains').select('id');
  await setDomainTracking(world.db, id, tracking);
}

test('two recipients open and click, and GET tells who did what, and when', async (t) => {
  const world = await startWorld(t);
  const { emailId, ann, bob } = await sendToTwo(world);
  const anns = linksOf(ann);
  const bobs = linksOf(bob);
  t.true(anns.pixel.startsWith(`${world.url()}/t/o/`));
  t.is(anns.clicks.length, 2);
  t.is(new Set([anns, bobs].flatMap(({ pixel, clicks }) => [pixel, ...clicks])).size, 6, 'each has its own');

  const openedAt = world.clock.now();
  const image = await visit(anns.pixel);
  t.is(image.status, 200);
  t.is(image.headers.get('content-type'), 'image/gif');
  t.regex(image.headers.get('cache-control')!, /no-store/);
  t.is((await image.arrayBuffer()).byteLength, 43);
  await world.clock.advance('1m');
  const clickedAt = world.clock.now();
  const click = await visit(anns.clicks[0]!);
  t.is(click.status, 302);
  t.is(click.headers.get('location'), target);
  t.is(click.headers.get('referrer-policy'), 'no-referrer');
  t.regex(click.headers.get('cache-control')!, /no-store/);
  await world.clock.advance('1m');
  await visit(anns.clicks[0]!);
  t.is((await visit(bobs.clicks[1]!)).headers.get('location'), 'http://app.invalid/other');

  const email = await world.when(emailId, ({ recipients: [first, second] }) => {
    return first.opens.count === 1 && first.clicks.count === 2 && second.clicks.count === 1;
  });
  const at = (time: number) => new Date(time).toISOString();
  const [first, second] = email.recipients;
  t.deepEqual(first.opens, { count: 1, firstAt: at(openedAt), lastAt: at(openedAt) });
  t.deepEqual(first.clicks, { count: 2, firstAt: at(clickedAt), lastAt: at(clickedAt + 60_000) });
  t.deepEqual(second.opens, { count: 0, firstAt: null, lastAt: null });
  t.is(first.status, 'delivered', 'an open is no state');
  const told = email.events
    .filter(({ type }: { type: string }) => /opened|clicked/.test(type))
    .map(({ type, recipient, data }: Record<string, unknown>) => ({ type, recipient, data }));
  const data = { tags: {}, first: true, kind: 'human', userAgent: chrome, ip: '127.0.0.1' };
  t.deepEqual(told[0], { type: 'email.opened', recipient: 'ann@there.invalid', data });
  const clicked = { type: 'email.clicked', recipient: 'ann@there.invalid', data: { ...data, url: target } };
  t.deepEqual(told[1], clicked);
  t.deepEqual(told.length, 4);
});

test('a forged or altered link is 404 and leads nowhere, and nothing is recorded', async (t) => {
  const world = await startWorld(t);
  const { emailId, ann } = await sendToTwo(world);
  const { pixel, clicks } = linksOf(ann);
  const click = clicks[0]!;
  const evil = Buffer.from('https://evil.invalid/').toString('base64url');
  const altered = [
    ...[click.slice(0, -1), `${click}A`, `${click}/`, click.replace('/t/c/', '/t/o/')],
    ...[pixel.replace('/t/o/', '/t/c/'), pixel.slice(0, -2), click.replace('/t/c/', '/T/C/')],
    ...[
      `${world.url()}/t/c/${evil}`,
      `${world.url()}/t/c/%zz`,
      `${world.url()}/t/c/`,
      `${click}?x`.replace('/t/c/', '/t/x/'),
    ],
    click.slice(0, -8) + (click.at(-8) === 'A' ? 'B' : 'A') + click.slice(-7),
  ];
  for (const url of altered) {
    const answer = await visit(url);
    t.is(answer.status, 404, url);
    t.is(answer.headers.get('location'), null);
    const { error, issues } = (await answer.json()) as Record<string, unknown>;
    t.deepEqual({ error, issues }, { error: 'NOT_FOUND', issues: [] });
  }
  t.is((await visit(click, {}, 'POST')).status, 405);
  // Visits are recorded in their order: when this one is there, so would be the others.
  await visit(pixel);
  const email = await world.when(emailId, ({ recipients: [first] }) => first.opens.count > 0);
  t.is(email.recipients[0].opens.count, 1);
  t.is(email.recipients[0].clicks.count, 0);
});

test('scanners are recorded, and not counted as people', async (t) => {
  const world = await startWorld(t);
  const { emailId, ann } = await sendToTwo(world);
  const { pixel, clicks } = linksOf(ann);
  const head = await visit(clicks[0]!, {}, 'HEAD');
  t.deepEqual([head.status, head.headers.get('location')], [302, target], 'machines are answered alike');
  t.is((await visit(pixel, {}, 'HEAD')).headers.get('content-length'), '43');
  await visit(pixel, { 'sec-purpose': 'prefetch' });
  await visit(clicks[0]!, { 'user-agent': `${chrome} (Barracuda Sentinel (EE))` });
  await visit(pixel, { 'user-agent': 'Mozilla/5.0 (via ggpht.com GoogleImageProxy)' });
  const isVisit = ({ type }: { type: string }) => /opened|clicked/.test(type);
  const email = await world.when(emailId, ({ events }) => events.filter(isVisit).length === 5);
  const seen = email.events.filter(isVisit).map((event: { data: { kind: string } }) => event.data.kind);
  t.deepEqual(seen, ['scanner', 'scanner', 'scanner', 'scanner', 'proxy']);
  t.like(email.recipients[0], { opens: { count: 1 }, clicks: { count: 0, firstAt: null } });
  t.like(email.recipients[1], { opens: { count: 0 }, clicks: { count: 0 } });
});

test('fifty opens at once are fifty opens', async (t) => {
  const world = await startWorld(t);
  const { emailId, ann, bob } = await sendToTwo(world);
  const pixels = [linksOf(ann).pixel, linksOf(bob).pixel];
  await Promise.all(Array.from({ length: 50 }, (_, n) => visit(pixels[n % 2]!)));
  const isAll = ({ opens }: { opens: { count: number } }) => opens.count === 25;
  t.truthy(await world.when(emailId, ({ recipients }) => recipients.every(isAll)));
});

test('links work after a restart, and what came before it is kept', async (t) => {
  const world = await startWorld(t, {
    settings: { POSTERN_BASE_URL: 'https://mail.invalid/' },
  });
  const { emailId, ann } = await sendToTwo(world);
  const { pixel, clicks } = linksOf(ann);
  t.true(pixel.startsWith('https://mail.invalid/t/o/'), 'under the address that the world sees');
  const local = (url: string) => url.replace('https://mail.invalid', world.url());
  await visit(local(pixel));
  await world.restart();
  t.is((await visit(local(clicks[0]!))).headers.get('location'), target);
  const counted = await world.when(emailId, ({ recipients: [first] }) => first.clicks.count === 1);
  t.is(counted.recipients[0].opens.count, 1, 'a visit that was answered is recorded before the end');
});

test('a visit to an email that was deleted is answered, and not kept', async (t) => {
  const world = await startWorld(t);
  const { emailId, ann } = await sendToTwo(world);
  await world.db('events').delete();
  await world.db('attempts').delete();
  await world.db('deliveries').delete();
  await world.db('emails').where({ id: emailId }).delete();
  const { pixel, clicks } = linksOf(ann);
  t.is((await visit(pixel)).status, 200);
  t.is((await visit(clicks[0]!)).headers.get('location'), target);
  await world.restart();
  t.deepEqual(await world.db('events').select(), []);
});

test('a domain’s tracking is off until it is set, and a send’s own word goes before it', async (t) => {
  const world = await startWorld(t);
  const seen = async (tracking: object | undefined) => {
    const { emailId, ann, bob } = await sendToTwo(world, { tracking });
    const { pixel, clicks } = linksOf(ann);
    t.is(ann.raw.equals(bob.raw), pixel === '' && clicks.length === 0, 'a copy for each only where needed');
    const { openTracking, clickTracking } = (await world.get(emailId)).tracking;
    t.deepEqual([openTracking, clickTracking], [pixel !== '', clicks.length > 0]);
    await world.clock.advance('5s');
    return [pixel !== '', clicks.length > 0];
  };
  t.deepEqual(await seen(undefined), [false, false]);
  t.deepEqual(await seen({}), [false, false]);
  t.deepEqual(await seen({ clickTracking: true }), [false, true]);
  await setTracking(world, { opens: true, clicks: true });
  const isBoth = async () => String(await seen(undefined)) === 'true,true';
  await until(isBoth, { what: 'the setting, which holds within a second' });
  t.deepEqual(await seen({ openTracking: false }), [false, true]);
  t.deepEqual(await seen({ openTracking: false, clickTracking: false }), [false, false]);
  await setTracking(world, { clicks: false });
  const isOpens = async () => String(await seen({})) === 'true,false';
  await until(isOpens, { what: 'the setting, which holds within a second' });
});

test('tracked copies differ in their links alone: same id, same date, same text, each signed', async (t) => {
  const world = await startWorld(t);
  const { ann, bob } = await sendToTwo(world);
  const header = (name: string, { raw }: MxMessage) =>
    new RegExp(`^${name}: (.*)$`, 'im').exec(raw.toString())?.[1];
  for (const name of ['message-id', 'date', 'subject', 'to'])
    t.is(header(name, ann), header(name, bob), name);
  t.is(header('to', ann), 'ann@there.invalid, bob@there.invalid');
  for (const message of [ann, bob]) {
    t.is(partOf(message.raw, 'text/plain').trimEnd(), text);
    const [signature] = await verifyDkim(message.raw, world.dns);
    t.like(signature, { domain: 'sender.invalid', result: 'pass' });
  }
  const without = (message: MxMessage) => linksOf(message).body.replaceAll(/\/t\/[oc]\/[\w-]+/g, '');
  t.is(without(ann), without(bob));
  t.regex(without(ann), /<a href="mailto:help@app.invalid">/);
  t.regex(without(ann), /<a href="https:\/\/app\.invalid\/quiet">/);
  t.regex(without(ann), /<img src="[^"]+"[^>]*><\/body><\/html>/);
});

test('mail without HTML has nothing to track, and stays one message', async (t) => {
  const world = await startWorld(t);
  const { ann, bob } = await sendToTwo(world, { html: undefined });
  t.deepEqual(ann.raw, bob.raw);
  t.is(partOf(ann.raw, 'text/plain').trimEnd(), text);
});

test('a click right after the delivery is a scanner’s, unless the mail was opened', async (t) => {
  const world = await startWorld(t);
  const clicksOf = async (name: string, openFirst: boolean) => {
    const { body } = await world.send({ to: `${name}@there.invalid`, html, tracking: on });
    await world.when(body.emailId, ({ status }) => status === 'delivered');
    const { pixel, clicks } = linksOf(world.mx[0]!.messages.at(-1)!);
    if (openFirst) await visit(pixel);
    await visit(clicks[0]!);
    const isClick = ({ type }: { type: string }) => type === 'email.clicked';
    const { events, recipients } = await world.when(body.emailId, (email) => email.events.some(isClick));
    return [events.find(isClick).data.kind, recipients[0].clicks.count];
  };
  t.deepEqual(await clicksOf('ann', false), ['scanner', 0]);
  t.deepEqual(await clicksOf('bob', true), ['human', 1]);
});

test('the operator gives a domain a tracking host, and sees each copy', async (t) => {
  const world = await startWorld(t);
  const { json, cli, refusal } = cliOf(t, world);
  await json('domain tracking sender.invalid --org Tenant --host links.sender.invalid');
  const { emailId, ann, bob } = await sendToTwo(world);
  const { pixel, clicks } = linksOf(ann);
  for (const url of [pixel, ...clicks]) t.is(new URL(url).origin, 'https://links.sender.invalid');
  await visit(pixel.replace('https://links.sender.invalid', world.url()));
  t.truthy(await world.when(emailId, ({ recipients: [first] }) => first.opens.count === 1));

  for (const { to, raw } of [ann, bob])
    t.deepEqual((await cli('email source', emailId, '--to', to[0]!)).stdout, raw);
  t.regex(await refusal(1, 'email source', emailId), /has a copy for each recipient; select one with --to/);
  t.regex(await refusal(1, 'email source --to cy@there.invalid', emailId), /is not for cy@there\.invalid/);
});
