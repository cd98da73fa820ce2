/** The test inbox: mail of test keys, as a developer reads it; nothing of it is ever sent, not even again. */
import test from 'ava';
import { createBrowser, setUp } from '#lab/browser/browser.ts';
import { freePort } from '#lab/load/ports.ts';
import { asNewTenant, startWorld } from '#lab/scenes/world.ts';

const html = `<p>Hello <a href="https://shop.example/confirm?a=1&amp;b=2">confirm</a>
  <a href="javascript:alert(1)">no</a> <a href="https://shop.example/confirm?a=1&amp;b=2">again</a></p>`;

test('test mail is in the inbox, live, with its links and at the width of a phone; sent again, it stays test mail', async (t) => {
  const world = await startWorld(t, { tenant: { isTest: true } });
  const other = await asNewTenant(world, { isTest: true });
  const browser = createBrowser(world);
  await setUp(browser, world);
  const base = `/dashboard/o/${world.orgId}`;
  const empty = await browser.get(`${base}/inbox`);
  t.regex(empty.text, /No test mail yet/);
  const live = /hx-get="([^"]+)"/.exec(empty.html)![1]!.replaceAll('&amp;', '&');
  t.is((await browser.ask('GET', live)).status, 204);

  await other.send({ to: 'ann@there.invalid', subject: 'Of another organization' });
  const { body } = await world.send({ to: 'ann@there.invalid', subject: 'Welcome', html, text: 'Hello' });
  await world.when(body.emailId, ({ status }) => status === 'delivered');
  const listed = await browser.ask('GET', live);
  t.regex(listed.html, /Welcome/);
  t.notRegex(listed.html, /Of another organization/);
  const path = `${base}/emails/${body.emailId}`;
  t.true(listed.html.includes(`href="${path}"`));
  t.notRegex((await browser.get(`${base}/emails`)).html, /Welcome/, 'test mail is in the inbox only');

  const page = await browser.get(path);
  t.regex(page.html, /class="crumbs[^>]*>\s*<a href="[^"]*\/inbox">Test inbox</);
  t.notRegex(page.html, /narrow-preview/);
  t.regex((await browser.get(`${path}?show=html&width=phone`)).html, /class="preview narrow-preview"/);
  const links = await browser.get(`${path}?show=links`);
  t.is(links.html.split('href="https://shop.example/confirm?a=1&amp;b=2"').length, 2, 'each once');
  t.true(links.html.includes('javascript:alert(1)'));
  t.false(links.html.includes('href="javascript:'));

  await browser.get(path);
  const again = (await browser.submit('/resend')).path.split('/').at(-1)!;
  t.not(again, body.emailId);
  const email = await world.when(again, ({ status }) => status === 'delivered');
  t.true(email.test);
  t.is(world.mx[0]!.sessions.length, 0);
});

test('in development the sample for SMTP names a host that exists, and the overview says where the mail is', async (t) => {
  const world = await startWorld(t, {
    settings: { POSTERN_SUBMISSION_PORT: String(await freePort('127.0.0.1')) },
    overrides: { allIsTest: true },
  });
  const browser = createBrowser(world);
  await setUp(browser, world);
  const base = `/dashboard/o/${world.orgId}`;
  t.regex((await browser.get(`${base}/inbox`)).text, /host: '(127\.0\.0\.1|localhost|\[::1\])'/);
  const { body } = await world.send({ to: 'ann@there.invalid' });
  t.truthy(body.emailId);
  t.regex(
    (await browser.get(base)).text,
    /no mail leaves this server, and none is counted here; it is in the test inbox/,
  );
});
