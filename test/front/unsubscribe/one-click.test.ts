/** Unsubscribing by the links and addresses of a stream's mail (RFC 2369, RFC 8058): what does it, and what does not. */
import { spawnSync } from 'node:child_process';
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import test from 'ava';
import { makeStream } from '#accounts/manage-streams.ts';
import { setDomainTracking } from '#accounts/rows/domains-table.ts';
import { areSigned, dkimKey } from '#lab/dkim.ts';
import { startReturns } from '#lab/scenes/returns.ts';
import { worldOfFile } from '#lab/scenes/shared-world.ts';
import { messageTo, startSubmission, transportOf } from '#lab/scenes/submission.ts';
import { asNewTenant, startWorld, type World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

const shared = worldOfFile();

const news = { name: 'news', title: 'Acme & <b>', kind: 'subscribed', color: '#1a73e8' } as const;

async function withNews<Of extends World>(world: Of): Promise<Of> {
  await makeStream(world.db, { orgId: world.orgId, ...news }, world.clock.now());
  return world;
}

const start = async () => withNews(await asNewTenant(shared()));

interface Sent {
  emailId: string;
  raw: Buffer;
  /** List-Unsubscribe, unfolded. */
  header: string;
  link: URL;
  mailto: string;
}

/** A mail of the stream to an address that no other test uses, as it arrived. */
async function sent(world: World, fields: object = {}): Promise<Sent> {
  const to = (fields as { to?: string }).to ?? `ann-${world.orgId}@there.invalid`;
  const { status, body } = await world.send({
    to,
    stream: 'news',
    subject: String(Math.random()),
    ...fields,
  });
  if (status !== 200) throw new Error(JSON.stringify(body));
  const { raw } = await until(() =>
    world.mx[0]!.messages.find((one) => one.to.includes(to) && one.raw.includes(body.id)),
  );
  return { emailId: body.emailId, raw, ...placesIn(raw) };
}

function placesIn(raw: Buffer) {
  const head = raw
    .toString('latin1')
    .split('\r\n\r\n', 1)[0]!
    .replace(/\r\n[ \t]+/g, ' ');
  const header = /^List-Unsubscribe: (.*)$/im.exec(head)?.[1] ?? '';
  return {
    header,
    link: new URL(/<(https?:[^>]+)>/.exec(header)?.[1] ?? 'http://none.invalid'),
    mailto: /<mailto:([^?>]+)/.exec(header)?.[1] ?? '',
  };
}

const form = 'application/x-www-form-urlencoded';

async function ask(world: World, { pathname }: URL, init: RequestInit = {}) {
  const response = await fetch(world.url() + pathname, { redirect: 'manual', ...init });
  return { status: response.status, headers: response.headers, body: await response.text() };
}

const post = (world: World, link: URL, body = 'List-Unsubscribe=One-Click', type = form) =>
  ask(world, link, { method: 'POST', headers: { 'content-type': type }, body });

const listOf = async ({ db, orgId }: World) =>
  (await db('suppressions').where({ org_id: orgId })).map(({ address, stream, reason }) => [
    address,
    stream,
    reason,
  ]);

const unsubscribedEvents = async ({ db, orgId }: World) =>
  (await db('events').where({ org_id: orgId, type: 'email.unsubscribed' })).map((row) =>
    JSON.parse(row.data),
  );

test('mail of a stream that people subscribe to says how to leave it; other mail says nothing', async (t) => {
  const world = await start();
  const { header, raw, link, mailto } = await sent(world);
  t.regex(header, /^<https?:\/\/[^>]+\/t\/u\/[\w-]+>, <mailto:u-[0-9a-v]{37}@[^?]+\?subject=unsubscribe>$/);
  t.regex(raw.toString('latin1'), /^List-Unsubscribe-Post: List-Unsubscribe=One-Click\r$/m);
  t.true(link.pathname.startsWith('/t/u/') && mailto.startsWith('u-'));
  t.is((await sent(world, { stream: 'transactional' })).header, '');
  await makeStream(world.db, { orgId: world.orgId, name: 'receipts' }, 0);
  t.is((await sent(world, { stream: 'receipts' })).header, '');
});

test('a caller’s own List-Unsubscribe wins', async (t) => {
  const world = await start();
  const own = { 'list-unsubscribe': '<https://acme.invalid/leave>' };
  const { header, raw } = await sent(world, { headers: own });
  t.is(header, '<https://acme.invalid/leave>');
  t.notRegex(raw.toString('latin1'), /^List-Unsubscribe-Post/im);
});

test('a caller’s own List-Unsubscribe-Post is not there twice', async (t) => {
  const world = await start();
  const { header, raw } = await sent(world, {
    headers: { 'list-unsubscribe-post': 'List-Unsubscribe=One-Click' },
  });
  t.regex(header, /^<https?:/);
  t.is(raw.toString('latin1').match(/^List-Unsubscribe-Post/gim)!.length, 1);
});

test('each recipient has a link of his own, whether the mail is tracked or not', async (t) => {
  const world = await start();
  for (const openTracking of [false, true]) {
    const to = ['a', 'b'].map((name) => `${name}-${openTracking}-${world.orgId}@there.invalid`);
    await world.send({ to, stream: 'news', html: '<p>Hi</p>', subject: 'x', tracking: { openTracking } });
    const links = await Promise.all(
      to.map(async (address) =>
        placesIn((await until(() => world.mx[0]!.messages.find((one) => one.to.includes(address)))).raw),
      ),
    );
    t.not(links[0]!.link.pathname, links[1]!.link.pathname);
    await post(world, links[1]!.link);
    t.true((await listOf(world)).some(([address]) => address === to[1]));
    t.false((await listOf(world)).some(([address]) => address === to[0]));
  }
});

test('one POST as Gmail’s unsubscribes, from that stream alone, once', async (t) => {
  const world = await start();
  await makeStream(world.db, { orgId: world.orgId, ...news, name: 'tips' }, 0);
  const to = 'Ann@there.invalid';
  const { link, emailId } = await sent(world, { to });
  const { status, body } = await post(world, link);
  t.is(status, 200);
  t.regex(body, /You are unsubscribed from Acme &amp; &lt;b>/);
  t.is((await post(world, link)).status, 200);
  t.deepEqual(await listOf(world), [[to, 'news', 'unsubscribed']]);
  t.deepEqual(await unsubscribedEvents(world), [{ stream: 'news', via: 'one-click' }]);
  t.true(
    (await world.get(emailId)).events.some(({ type }: { type: string }) => type === 'email.unsubscribed'),
  );
  t.is(
    (await world.send({ to, stream: 'news', subject: 'No more' })).body.error,
    'ALL_RECIPIENTS_SUPPRESSED',
  );
  t.is((await world.send({ to, stream: 'tips', subject: 'Another' })).status, 200);
  t.is((await world.send({ to, subject: 'Your receipt' })).status, 200);
});

test('a second POST needs no lock, so that none of any number holds up mail', async (t) => {
  const world = await withNews(await startWorld(t));
  const { link } = await sent(world);
  t.is((await post(world, link)).status, 200);
  await world.db.transaction(async (trx) => {
    await trx('organizations')
      .where({ id: world.orgId })
      .update({ name: `Locked ${world.orgId}` });
    t.is((await post(world, link)).status, 200);
  });
  t.is((await listOf(world)).length, 1);
  await world.db('organizations').where({ id: world.orgId }).delete();
  const { orgId } = await asNewTenant(world);
  await world.db.transaction(async (trx) => {
    await trx('organizations').where({ id: orgId }).update({ name: 'Locked' });
    t.is((await post(world, link)).status, 200, 'of an organization that is gone');
  });
});

test('a form of several parts does, too; any other POST changes nothing', async (t) => {
  const world = await start();
  const { link } = await sent(world);
  t.is((await post(world, link, '')).status, 400);
  t.is((await post(world, link, 'x=1')).status, 400);
  t.is((await post(world, link, 'a'.repeat(10_000))).status, 400);
  t.deepEqual(await listOf(world), []);
  const parts =
    '--x\r\nContent-Disposition: form-data; name="List-Unsubscribe"\r\n\r\nOne-Click\r\n--x--\r\n';
  t.is((await post(world, link, parts, 'multipart/form-data; boundary=x')).status, 200);
  t.is((await listOf(world)).length, 1);
});

test('a scanner’s GET and HEAD change nothing; the page has one button and no script', async (t) => {
  const world = await start();
  const { link } = await sent(world);
  const page = await ask(world, link);
  const head = await ask(world, link, { method: 'HEAD' });
  t.deepEqual([page.status, head.status, head.body], [200, 200, '']);
  t.deepEqual(await listOf(world), []);
  t.is(page.body.match(/<button/g)?.length, 1);
  t.notRegex(page.body, /<script|https?:\/\//);
  t.regex(page.body, /Unsubscribe from Acme &amp; &lt;b>\?/);
  t.regex(page.body, /background: #1a73e8/);
  t.is(page.headers.get('cache-control'), 'no-store');
  t.regex(page.headers.get('content-security-policy')!, /default-src 'none'.*form-action 'self'/);
  for (const method of ['PUT', 'DELETE', 'PATCH']) t.true((await ask(world, link, { method })).status >= 400);
  t.deepEqual(await listOf(world), []);
  t.is((await post(world, link, 'from=page')).status, 200);
  t.deepEqual(await unsubscribedEvents(world), [{ stream: 'news', via: 'page' }]);
  t.notRegex((await ask(world, link)).body, /<button/);
});

test('a forged link unsubscribes nobody, nor does one at another customer’s host', async (t) => {
  const world = await start();
  const { link } = await sent(world, {
    html: '<a href="https://a.invalid/">a</a>',
    tracking: { clickTracking: true },
  });
  const { pathname } = link;
  const forged = [
    pathname.slice(0, -1) + (pathname.endsWith('A') ? 'B' : 'A'),
    pathname.slice(0, 60),
    `${pathname}AAAA`,
    pathname.replace('/t/u/', '/t/c/'),
    '/t/u/x',
  ];
  for (const path of forged) {
    const { status } = await post(world, new URL(path, 'http://x.invalid'));
    t.true(status === 404 || status === 405, `${path}: ${status}`);
  }
  const other = await asNewTenant(world);
  const { id } = await world.db('domains').where({ org_id: other.orgId }).first('id');
  await setDomainTracking(world.db, id, { host: `t-${other.orgId.slice(-6)}.sender.invalid` });
  await world.clock.advance('11s');
  const host = `t-${other.orgId.slice(-6)}.sender.invalid`;
  t.is(await postAt(world, host, pathname), 404);
  t.deepEqual(await listOf(world), []);
});

function postAt(world: World, host: string, path: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { host, 'content-type': form };
    const call = request(world.url() + path, { method: 'POST', headers, agent: false }, async (response) => {
      await text(response);
      resolve(response.statusCode!);
    });
    call.on('error', reject).end('List-Unsubscribe=One-Click');
  });
}

test('a link from before a new subscription does not end it by one click; the person can confirm it', async (t) => {
  const world = await start();
  const to = `again-${world.orgId}@there.invalid`;
  const old = await sent(world, { to });
  await post(world, old.link);
  const removed = await world.call('DELETE', `/api/public/suppressions/${to}?stream=news`);
  t.is(removed.status, 200);
  await new Promise((resolve) => setTimeout(resolve, 5));
  const { status, body } = await post(world, old.link);
  t.is(status, 409);
  t.regex(body, /subscribed to Acme &amp; &lt;b> again/);
  t.deepEqual(await listOf(world), []);
  t.regex((await ask(world, old.link)).body, /subscribed to Acme &amp; &lt;b> again/);
  const later = await sent(world, { to });
  t.is((await post(world, later.link)).status, 200);
  t.deepEqual(await listOf(world), [[to, 'news', 'unsubscribed']]);
  await world.call('DELETE', `/api/public/suppressions/${to}?stream=news`);
  t.is((await post(world, old.link, 'from=page')).status, 200, 'confirmed');
  t.is((await listOf(world)).length, 1);
});

test('a subscription that a clock begins that is ahead can be left by one click', async (t) => {
  const world = await start();
  const { link } = await sent(world);
  const row = { org_id: world.orgId, stream: 'news', address_key: `ann-${world.orgId}@there.invalid` };
  await world.db('resubscriptions').insert({ ...row, at: world.clock.now() + 7_200_000 });
  t.is((await post(world, link)).status, 200);
  t.is((await listOf(world)).length, 1);
});

test('the link works when the email, or its stream, has been deleted', async (t) => {
  const world = await start();
  const { link, emailId } = await sent(world);
  await world.when(emailId, ({ status }) => status === 'delivered');
  await world.db('emails').where({ id: emailId }).delete();
  await world.call('DELETE', '/api/public/streams/news');
  t.regex((await post(world, link)).body, /unsubscribed from news/);
  t.is((await listOf(world)).length, 1);
  await withNews(world);
  const again = await world.send({ to: `ann-${world.orgId}@there.invalid`, stream: 'news' });
  t.is(again.status, 422, 'a new stream of the name knows who left');
});

test('a link of test mail suppresses nobody', async (t) => {
  const world = await startWorld(t, { tenant: { isTest: true } });
  await withNews(world);
  const dry = await world.call('POST', '/api/public/email/send?dryRun=true', {
    body: JSON.stringify({
      from: 'app@sender.invalid',
      to: 'a@b.invalid',
      subject: 's',
      text: 't',
      stream: 'news',
    }),
  });
  const head = dry.body.message.headers.map(
    (one: { name: string; value: string }) => `${one.name}: ${one.value}`,
  );
  const { link } = placesIn(Buffer.from(head.join('\r\n')));
  t.is((await post(world, link)).status, 200);
  t.deepEqual(await listOf(world), []);
});

test('mail to the address does the same; what a program answers there does not', async (t) => {
  const world = await withNews(await startReturns(t));
  const { mailto } = await sent(world);
  await world.comesBack(mailto, 'Subject: Out of office\r\n\r\nI am away.\r\n', '');
  const answer = 'Subject: Away\r\nAuto-Submitted: auto-replied (vacation)\r\n\r\nI am away.\r\n';
  await world.comesBack(mailto, answer, 'ann@there.invalid');
  t.deepEqual(await listOf(world), []);
  await world.comesBack(mailto.toUpperCase(), 'Subject: unsubscribe\r\n\r\n\r\n', 'ann@there.invalid');
  t.deepEqual((await listOf(world))[0]!.slice(1), ['news', 'unsubscribed']);
  t.deepEqual(await unsubscribedEvents(world), [{ stream: 'news', via: 'mail' }]);
  const forged = mailto.replace(/^u-./, (start) => `u-${start.endsWith('0') ? '1' : '0'}`);
  await t.throwsAsync(world.comesBack(forged, 'Subject: x\r\n\r\n', 'eve@there.invalid'), { message: /550/ });
  await t.throwsAsync(world.comesBack(mailto.replace('u-', 'b-'), 'Subject: x\r\n\r\n', 'e@there.invalid'), {
    message: /550/,
  });
});

test('submitted mail has the links by a header of ours, or by its key', async (t) => {
  const world = await startSubmission(t);
  await makeStream(world.db, { orgId: world.orgId, ...news }, 0);
  const transport = transportOf({ world, key: world.key, orgId: world.orgId });
  const head =
    'From: app@sender.invalid\r\nTo: ann@there.invalid\r\nSubject: Hi\r\nX-Postern-Stream: news\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n';
  const envelope = { from: 'app@sender.invalid', to: ['ann@there.invalid'] };
  await transport.sendMail({ envelope, raw: `${head}\r\nHi\r\n` });
  const { raw } = await messageTo(world, 'ann@there.invalid');
  t.regex(placesIn(raw).header, /\/t\/u\//);
  t.is(raw.toString('latin1').match(/^List-Unsubscribe-Post/gim)!.length, 1);
  t.notRegex(raw.toString('latin1'), /X-Postern-Stream/i);
  await areSigned(t, world);
});

const hasDkimpy = spawnSync('python3', ['-c', 'import dkim']).status === 0;

test('the fields are signed, as dkimpy verifies', async (t) => {
  if (!hasDkimpy) {
    t.pass('no dkimpy here');
    return;
  }
  const world = await start();
  const { raw } = await sent(world);
  const signature = raw
    .toString('latin1')
    .replace(/\r\n[ \t]+/g, ' ')
    .match(/^DKIM-Signature:.*$/im)![0];
  const [, names] = /\bh=([^;]+)/.exec(signature)!;
  const signed = names!.replace(/\s/g, '').toLowerCase().split(':');
  t.true(signed.includes('list-unsubscribe') && signed.includes('list-unsubscribe-post'));
  const record = `v=DKIM1; k=rsa; p=${dkimKey.publicKey}`;
  const verify = (message: Buffer) =>
    spawnSync(
      'python3',
      [
        '-c',
        `import dkim,sys; print(dkim.verify(sys.stdin.buffer.read(), dnsfunc=lambda *a, **k: ${JSON.stringify(record)}.encode()))`,
      ],
      { input: message },
    ).stdout.toString();
  t.is(verify(raw).trim(), 'True');
  const changed = Buffer.from(raw.toString('latin1').replace('One-Click', 'One-Clock'), 'latin1');
  t.is(verify(changed).trim(), 'False');
});
