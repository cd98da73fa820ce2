/** Records are published at a real BIND and a real Knot, which check the updates, their prerequisites and their signatures. */

import { Resolver } from 'node:dns/promises';
import { existsSync } from 'node:fs';
import { chmod, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { newDkimKey, recordsFor } from '#accounts/domains.ts';
import { temporaryDirectory } from '#lab/evidence.ts';
import { testWithProgram } from '#lab/needing.ts';
import { nameServers } from '#lab/programs/name-servers.ts';
import { type Change, planChanges } from '#operate/publish/plan-changes.ts';
import { Rfc2136 } from '#operate/publish/rfc2136.ts';

const zone = 'shop.invalid';
const key = { name: 'postern', secret: Buffer.from('a secret of thirty-two bytes...').toString('base64') };
const names = { hostname: 'mail.postern.invalid', returnPathDomain: 'mail.postern.invalid' };

/** An old key, in strings that we would split elsewhere; a foreign alias; a policy of the domain; a text beside. */
const records = (selector: string) => [
  `${selector}._domainkey TXT "v=DKIM1; k=rsa; " "p=OLD"`,
  'links CNAME elsewhere.invalid.',
  '_dmarc TXT "v=DMARC1; p=reject"',
  '@ TXT "site-verification=1"',
];

for (const [name, { program, packages, start }] of Object.entries(nameServers)) {
  async function startPrimary(t: ExecutionContext, selector: string) {
    const directory = join(await temporaryDirectory(t), name);
    await mkdir(directory);
    await chmod(directory, 0o777);
    const server = await start({ directory, zone, records: records(selector), key });
    t.teardown(() => server.stop());
    const resolver = new Resolver();
    resolver.setServers([`127.0.0.1:${server.port}`]);
    const provider = (secret = key.secret, keyName = key.name, now = Date.now) =>
      new Rfc2136({
        server: { host: '127.0.0.1', port: server.port },
        key: { name: keyName, secret: Buffer.from(secret, 'base64') },
        now,
      });
    return { resolver, provider };
  }

  testWithProgram(existsSync(program))(
    `${name}: our records are added, an old key is replaced, others are left (needs ${packages})`,
    async (t) => {
      const { selector, publicKey } = await newDkimKey();
      const { resolver, provider } = await startPrimary(t, selector);
      const domain = {
        name: zone,
        dkimSelector: selector,
        dkimPublicKey: publicKey,
        trackingHost: `links.${zone}`,
      };
      const wanted = recordsFor(domain, { ...names, inboundPort: 25 });
      const dns = provider();
      const planned = await planChanges(dns, wanted);
      t.deepEqual(
        planned.map(({ action, record }) => `${action} ${record.type} ${record.name}`),
        [
          `replace TXT ${selector}._domainkey.${zone}`,
          `add CNAME bounces.${zone}`,
          `keep TXT _dmarc.${zone}`,
          `leave TXT ${zone}._report._dmarc.mail.postern.invalid`,
          `leave CNAME links.${zone}`,
        ],
      );
      const changes = planned.filter(
        (one): one is Change => one.action === 'add' || one.action === 'replace',
      );
      for (const change of changes) await dns.write(change);
      const texts = await resolver.resolveTxt(`${selector}._domainkey.${zone}`);
      t.deepEqual(
        texts.map((strings) => strings.join('')),
        [wanted[0]!.value],
      );
      t.deepEqual(await resolver.resolveCname(`bounces.${zone}`), ['mail.postern.invalid']);
      t.deepEqual(await resolver.resolveCname(`links.${zone}`), ['elsewhere.invalid']);
      t.deepEqual(await resolver.resolveTxt(`_dmarc.${zone}`), [['v=DMARC1; p=reject']]);
      const again = await planChanges(dns, wanted);
      t.deepEqual(
        again.slice(0, 3).map(({ action }) => action),
        ['keep', 'keep', 'keep'],
      );

      for (const change of changes)
        await t.throwsAsync(dns.write(change), { message: /have changed since they were read/ });
      const beside = { type: 'TXT', name: zone, value: 'v=spf1 include:mail.postern.invalid ~all' };
      const [add] = (await planChanges(dns, [beside])) as [Change];
      await dns.write(add);
      t.is((await resolver.resolveTxt(zone)).length, 2, 'the text of somebody else is still there');
    },
  );

  testWithProgram(existsSync(program))(
    `${name}: a wrong key, a wrong clock and a forbidden record are refused, in one sentence (needs ${packages})`,
    async (t) => {
      const { provider } = await startPrimary(t, 'pstn00000000');
      const change: Change = {
        action: 'add',
        record: { type: 'CNAME', name: `bounces.${zone}`, value: names.hostname },
        present: [],
      };
      const other = Buffer.from('another secret').toString('base64');
      await t.throwsAsync(provider(other).write(change), { message: /the secret in POSTERN_DNS_UPDATE_KEY/ });
      await t.throwsAsync(provider(key.secret, 'nobody').write(change), { message: /does not take the key/ });
      const late = () => Date.now() - 3_600_000;
      await t.throwsAsync(provider(key.secret, key.name, late).write(change), { message: /clock/ });
      const forbidden = { ...change, record: { type: 'A', name: `www.${zone}`, value: '192.0.2.1' } };
      await t.throwsAsync(provider().write(forbidden), {
        message: /refused to change www\.shop\.invalid \(REFUSED\)|what the key may update/,
      });
      await provider().write(change);
    },
  );
}
