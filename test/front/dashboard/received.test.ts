/** Routes and received mail in the dashboard: added, checked, refused with a reason, searched, and shown without running anything. */
import test, { type ExecutionContext } from 'ava';
import { createBrowser, setUp } from '#lab/browser/browser.ts';
import { freePort } from '#lab/load/ports.ts';
import { receivedMail } from '#lab/received.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { insertReceived } from '#mail/received/rows/received-mails.ts';

async function arrive(t: ExecutionContext) {
  const world = await startWorld(t, {
    settings: { POSTERN_INBOUND_PORT: String(await freePort('127.0.0.1')) },
  });
  const browser = createBrowser(world);
  await setUp(browser, world);
  const [{ id: orgId }] = await world.db('organizations').select('id');
  return { world, browser, orgId, base: `/dashboard/o/${orgId}` };
}

test('a domain is switched on, a route added and checked, and what is refused says why', async (t) => {
  const { world, browser, base } = await arrive(t);
  await browser.get(`${base}/domains/sender.invalid`);
  const on = await browser.submit('/receive', { receives: 'on' });
  t.regex(on.text, /receives mail as soon as its MX record below is published/);
  t.true(on.html.includes(`<code>10 ${world.config.hostname}</code>`));

  const none = await browser.get(`${base}/routes?address=orders@sender.invalid`);
  t.regex(none.text, /No routes yet/);
  const add = (fields: Record<string, string>) =>
    browser.submit('/routes', { action: 'store', priority: '', reply: '', ...fields });
  t.regex((await add({ pattern: '/(/@sender.invalid' })).text, /not an expression in RE2.{1,6}s syntax/);
  t.is(browser.page().status, 422);
  t.regex((await add({ pattern: 'there.invalid' })).text, /not registered in this organization/);
  t.regex((await add({ pattern: 'a@sender.invalid', priority: '-1' })).text, /Enter a number from 0/);
  t.regex(
    (await add({ pattern: 'a@sender.invalid', action: 'reject', reply: '250 OK' })).text,
    /give a reply such as/,
  );
  t.regex((await add({ pattern: `a${'a'.repeat(6000)}@sender.invalid` })).text, /at most 254 characters/);
  const added = await add({
    pattern: 'Orders+*@Sender.Invalid',
    action: 'webhook',
    reply: 'of another action',
  });
  t.regex(added.text, /The route Orders\+\*@sender\.invalid was added/);
  t.regex(added.text, /Orders\+\*@sender\.invalid 200 posted to all webhooks/);
  await add({ pattern: 'sender.invalid', action: 'reject', reply: '550 5.7.1 <b>No</b>' });
  t.true(browser.page().html.includes('550 5.7.1 &lt;b&gt;No&lt;/b&gt;'));

  const { id } = await world.db('receiving_routes').where({ action: 'webhook' }).first('id');
  const change = async (fields: Record<string, string>) => {
    await browser.get(`${base}/routes/${id}`);
    return browser.submit(`/routes/${id}`, fields);
  };
  t.regex((await change({ pattern: 'there.invalid' })).text, /not registered in this organization/);
  t.regex((await change({ priority: '150' })).text, /The route Orders\+\*@sender\.invalid was changed/);
  t.like(await world.db('receiving_routes').where({ id }).first(), {
    priority: 150,
    action: 'webhook',
    dmarc: 'accept',
  });
  t.is((await browser.get(`${base}/routes/${base.split('/').at(-1)}`)).status, 404);

  const check = async (address: string) =>
    (await browser.get(`${base}/routes?address=${encodeURIComponent(address)}`)).text;
  t.regex(await check('orders+17@sender.invalid'), /The route Orders\+\*@sender\.invalid takes it/);
  t.regex(await check('ann@sender.invalid'), /takes it: refused with 550 5\.7\.1/);
  t.regex(await check('ann@there.invalid'), /there\.invalid is not a domain of this organization/);
  await browser.get(`${base}/routes`);
  await browser.submit('/remove');
  t.regex(browser.page().text, /was removed/);
  t.is((await world.db('receiving_routes').select()).length, 1);
});

test('received mail is searched by recipient, sender, subject and time, and pages go on', async (t) => {
  const { world, browser, orgId, base } = await arrive(t);
  const { db, clock } = world;
  const at = clock.now();
  const mails = Array.from({ length: 120 }, (_, n) =>
    receivedMail({
      orgId,
      at,
      subject: n === 3 ? 'Order 100%_4711' : `Nothing ${n}`,
      sender: n === 4 ? 'bob@elsewhere.invalid' : 'ann@there.invalid',
      fromHeader: n === 5 ? 'Zoë <zoe@there.invalid>' : 'Ann <ann@there.invalid>',
      recipients: n === 6 ? ['a@x.invalid', 'TICKET+1@x.invalid'] : ['orders@x.invalid'],
    }),
  );
  await db.transaction((trx) => insertReceived(trx, mails));
  const found = async (query: string) => {
    const { html } = await browser.get(`${base}/received?${query}`);
    return mails.flatMap(({ id }, n) => (html.includes(`/received/${id}"`) ? [n] : []));
  };
  t.deepEqual(await found('subject=100%25_47'), [3]);
  t.deepEqual(await found('from=ELSEWHERE'), [4]);
  t.deepEqual(await found('from=zo%C3%AB'), [5]);
  t.deepEqual(await found('to=ticket'), [6]);
  t.deepEqual(await found('to=ticket&subject=4711'), []);
  t.regex(browser.page().text, /Nothing found/);
  t.deepEqual(await found('until=2020-01-01'), []);
  t.is((await found('within=1h')).length, 50);
  const seen: number[] = [];
  for (let next: string | undefined = `${base}/received`; next !== undefined; ) {
    const { html } = await browser.get(next);
    seen.push(...mails.flatMap(({ id }, n) => (html.includes(`/received/${id}"`) ? [n] : [])));
    next = /href="([^"]*after=[^"]*)"/.exec(html)?.[1]?.replaceAll('&amp;', '&');
  }
  t.deepEqual(
    seen.sort((a, b) => a - b),
    mails.map((_, n) => n),
  );
  t.is((await browser.get(`${base}/received?after=%27%3B--`)).status, 404);
});

test('a mail is shown with its verdicts and files; its HTML runs nothing, and its bytes are those that came', async (t) => {
  const { world, browser, orgId, base } = await arrive(t);
  const html = '<script>window.pwned=1</script><img src="http://there.invalid/x.png"><p>Hello</p>';
  const raw = Buffer.from(
    `From: ann@there.invalid\r\nSubject: Hi\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/html\r\n\r\n${html}\r\n--b\r\nContent-Type: text/html; name=a.html\r\nContent-Disposition: attachment; filename=a.html\r\n\r\n${html}\r\n--b--\r\n`,
  );
  const mail = receivedMail({ orgId, raw, at: world.clock.now(), subject: 'Hi <b>', sender: '' });
  mail.summary = {
    ...mail.summary,
    isAutomatic: true,
    verdicts: {
      ...mail.summary.verdicts,
      spf: { result: 'fail', domain: 'there.invalid' },
      dmarc: { result: 'fail', domain: 'there.invalid', policy: 'reject' },
    },
  };
  await world.db.transaction((trx) => insertReceived(trx, [mail]));
  const path = `${base}/received/${mail.id}`;
  const shown = await browser.get(path);
  t.regex(shown.text, /SPF fail there\.invalid/);
  t.regex(shown.text, /DMARC fail there\.invalid, policy reject/);
  t.regex(shown.text, /Envelope sender <>/);
  t.regex(shown.html, /<iframe class="preview" sandbox=""/);
  t.false(shown.html.includes('<b>'));
  const ask = async (part: string) => {
    const answer = await browser.ask('GET', `${path}/${part}`);
    return { ...answer, policy: answer.headers.get('content-security-policy') };
  };
  const preview = await ask('preview');
  t.regex(preview.policy!, /default-src 'none'.*sandbox; img-src data:$/);
  t.true(preview.html.includes('Hello'));
  const source = await ask('source');
  t.is(source.html, raw.toString());
  t.regex(source.headers.get('content-disposition')!, /^attachment/);
  const file = await ask('attachments/0');
  t.is(file.headers.get('content-type'), 'application/octet-stream');
  t.regex(file.policy!, /sandbox/);
  t.is((await browser.get(`${base}/received/${orgId}`)).status, 404);
});
