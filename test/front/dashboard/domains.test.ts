/** Domains: added, their records looked for in DNS, found or said to be wrong in words, their settings, their end. */

import type { ExecutionContext } from 'ava';
import test from 'ava';
import { invite } from '#accounts/people/people.ts';
import { createBrowser, password, setUp } from '#lab/browser/browser.ts';
import { freePort } from '#lab/load/ports.ts';
import { startWorld, type World, type WorldOptions } from '#lab/scenes/world.ts';
import { keepReport } from '#mail/returned/rows/domain-reports-table.ts';

async function arrive(t: ExecutionContext, options: WorldOptions = {}) {
  const world = await startWorld(t, options);
  const browser = createBrowser(world);
  await setUp(browser, world);
  const [{ id }] = await world.db('organizations').select('id');
  return { world, browser, base: `/dashboard/o/${id}/domains` };
}

const keyOf = async (world: World, name: string) => {
  const row = await world.db('domains').where({ name }).first();
  return {
    name: `${row.dkim_selector}._domainkey.${name}`,
    value: `v=DKIM1; k=rsa; p=${row.dkim_public_key}`,
  };
};

test('a domain is added, said to lack its records, verified when they are there, and removed by its name', async (t) => {
  const { world, browser, base } = await arrive(t);
  await browser.get(base);
  t.regex(browser.page().text, /sender\.invalid Verified/);
  t.regex((await browser.submit('/domains', { name: 'not a domain' })).text, /not a domain name/);
  t.is(browser.page().status, 422);
  t.regex(
    (await browser.submit('/domains', { name: 'sender.invalid' })).text,
    /already registered in this organization/,
  );

  const added = await browser.submit('/domains', { name: 'https://Shop.Invalid/' });
  t.is(added.path, `${base}/shop.invalid`);
  const dkim = await keyOf(world, 'shop.invalid');
  for (const text of [dkim.name, dkim.value, 'bounces.shop.invalid'])
    t.true(added.html.includes(`<code>${text}</code>`), text);
  t.true(added.html.includes(`data-copy="${dkim.value}"`));

  t.regex(
    (await browser.submit('/check')).text,
    /There is no TXT record at pstn\w+\._domainkey\.shop\.invalid yet\..* DKIM record Missing/,
  );
  world.dns.set({ [dkim.name]: { TXT: [dkim.value.slice(0, 255)] } });
  t.regex(
    (await browser.submit('/check')).text,
    / ends after \d+ of \d+ characters: it was cut off.* Different/,
  );
  world.dns.set({ [dkim.name]: 'SERVFAIL' });
  t.regex((await browser.submit('/check')).text, /The DNS lookup failed \(ESERVFAIL\).* No answer/);

  world.dns.set({ [dkim.name]: { TXT: [dkim.value] }, 'bounces.shop.invalid': { MX: ['10 x.invalid'] } });
  const seen = await browser.get(`${base}/shop.invalid/records`);
  t.regex(seen.text, /The required record was found\. Check again/);
  t.is(
    (await world.db('domains').where({ name: 'shop.invalid' }).first()).status,
    'pending',
    'looking changes nothing',
  );
  await browser.get(`${base}/shop.invalid`);
  const verified = await browser.submit('/check');
  t.regex(
    verified.text,
    /DNS records Verified You can send mail from this domain\. Send a test email , or create an API key/,
  );
  t.regex(verified.text, /Found x\.invalid .* leads to x\.invalid, so bounces would not come back/);

  world.dns.set({ [dkim.name]: null });
  t.regex(
    (await browser.submit('/check')).text,
    /DNS records Verified The required record is missing or wrong\. You can still send .* DKIM record Missing/,
  );
  t.regex((await browser.get(base)).text, /shop\.invalid Verified/);
  await browser.get(`${base}/shop.invalid`);

  t.regex((await browser.submit('/remove', { typed: 'sender.invalid' })).text, /was not removed/);
  t.is((await world.db('domains').where({ name: 'shop.invalid' })).length, 1);
  t.regex(
    (await browser.submit('/remove', { typed: 'shop.invalid' })).text,
    /shop\.invalid and its DKIM keys were removed/,
  );
  t.is((await world.db('domains').where({ name: 'shop.invalid' })).length, 0);
});

test('a record of the server is shown to its operator; an owner reads one sentence of it, and only if it is wrong', async (t) => {
  const { world, browser, base } = await arrive(t, {
    settings: {
      POSTERN_RETURN_PATH_DOMAIN: 'bounces.operator.invalid',
      POSTERN_INBOUND_PORT: String(await freePort('127.0.0.1')),
    },
  });
  const path = `${base}/sender.invalid`;
  const toCorrect = /The operator of this server has a record to correct/;
  const seen = await browser.get(`${path}/records`);
  t.regex(seen.text, /In your DNS .* DKIM .*The operator’s .* DMARC reports .* bounces\.operator\.invalid/);
  t.notRegex(seen.text, toCorrect);
  const { dkim_selector: selector } = await world.db('domains').first();
  t.regex(
    seen.text,
    new RegExp(`${selector}\\._domainkey Copy the name in the zone .* with the zone sender\\.invalid`),
  );
  t.regex(seen.html, /data-copy="_dmarc"/);
  t.regex(seen.text, /; in the zone of operator\.invalid/);

  const [{ id: orgId }] = await world.db('organizations').select('id');
  const person = { email: 'ann@postern.invalid', name: 'Ann', isOperator: false };
  const member = { orgId, role: 'owner' as const };
  const { link } = await invite(world.db, { ...person, member }, world.clock.now());
  const owner = createBrowser(world);
  await owner.get(link!.path);
  await owner.submit('', { password });
  const read = await owner.get(`${path}/records`);
  t.regex(read.text, toCorrect);
  t.notRegex(read.html, /v=DMARC1<|zone of operator/);
  t.regex(
    read.text,
    new RegExp(
      `; in the zone of sender\\.invalid ${selector}\\._domainkey\\.sender\\.invalid\\. 3600 IN TXT`,
    ),
  );
  world.dns.set({ 'sender.invalid._report._dmarc.bounces.operator.invalid': { TXT: ['v=DMARC1'] } });
  t.notRegex((await owner.get(`${path}/records`)).text, toCorrect);
});

test('tracking and TLS are set as the API shows them; what is wrong is said at its field', async (t) => {
  const { world, browser, base } = await arrive(t);
  const domain = async () => (await world.call('GET', '/api/public/domains/sender.invalid')).body.domain;
  await browser.get(`${base}/sender.invalid`);
  await browser.submit('/tracking', { opens: 'on', host: 'links.sender.invalid' });
  t.like(await domain(), {
    tracking: { openTracking: true, clickTracking: false, host: 'links.sender.invalid' },
  });
  t.regex(browser.page().text, /Tracking links CNAME .*links\.sender\.invalid/);
  t.regex(
    (await browser.submit('/tracking', { host: 'no host' })).html,
    /field wrong">\s*<label for="field-host"/,
  );
  t.is((await domain()).tracking.host, 'links.sender.invalid');
  await browser.submit('/tracking', { host: '' });
  t.is((await domain()).tracking.host, null);
  await browser.submit('/tls', { tls: 'verified' });
  t.is((await domain()).tls, 'verified');
});

test('reports on a domain are shown, whatever they say', async (t) => {
  const { world, browser, base } = await arrive(t);
  const { verified_at: beginsAt } = await world.db('domains').first();
  const times = { beginsAt, endsAt: beginsAt };
  const totals = { messages: 1234, passed: 1200, quarantined: 30, rejected: 4 };
  const report = {
    kind: 'dmarc' as const,
    domain: 'sender.invalid',
    reporter: '<b>Big</b> Mail',
    reportId: '1',
    ...times,
  };
  await keepReport(world.db, { ...report, policy: 'none', totals, sources: [] }, [], world.clock.now());
  const { text, html } = await browser.get(`${base}/sender.invalid`);
  t.regex(text, /<b>Big<\/b> Mail DMARC of sender\.invalid none just now 1,234 messages 34/);
  t.false(html.includes('<b>Big'));
});

test('a new DKIM key is made, waits for its record, can be dropped, and takes the place of the old one', async (t) => {
  const { world, browser, base } = await arrive(t);
  const page = `${base}/sender.invalid`;
  await browser.get(page);
  t.regex((await browser.submit('/rotate')).text, /A new key was created.* Pending/);
  t.regex((await browser.submit('/rotate/cancel')).text, /The new key was discarded/);
  await browser.submit('/rotate');
  const pending = await world.db('dkim_keys').where({ status: 'pending' }).first();
  world.dns.set({
    [`${pending.selector}._domainkey.sender.invalid`]: { TXT: [`v=DKIM1; k=rsa; p=${pending.public_key}`] },
  });
  const settled = await browser.submit('/check');
  t.regex(settled.text, /Verified/);
  t.is((await world.db('domains').where({ name: 'sender.invalid' }).first()).dkim_selector, pending.selector);
  t.regex((await browser.get(page)).text, new RegExp(`${pending.selector} RSA Signing .* Retired`));
  t.regex((await browser.submit('/ed25519')).text, /Ed25519 Pending/);
});
