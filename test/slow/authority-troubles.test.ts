/** An authority that fails, limits or answers nonsense, hosts that are not ready, and many new ones: who waits, and how long. */
import test, { type ExecutionContext } from 'ava';
import { insertDomain, setDomainStatus, setDomainTracking } from '#accounts/rows/domains-table.ts';
import { type AcmeWorld, type AcmeWorldOptions, startAcmeWorld } from '#lab/certificates/acme-world.ts';
import { problem } from '#lab/certificates/authority.ts';
import { asNewTenant } from '#lab/scenes/world.ts';

/** Days go by here second by second, which takes ten times as long on PostgreSQL; acme-pebble.test.ts has the statements there. */
const start = (t: ExecutionContext, options: AcmeWorldOptions = {}) =>
  startAcmeWorld(t, { database: 'sqlite', ...options });

test('if one way fails, the next attempt takes the other, and not before a quarter of an hour', async (t) => {
  // As with a firewall in front of port 80.
  const world = await start(t, { authority: { httpPort: 1 } });
  t.like(await world.untilFailed('postern.invalid'), { type: 'connection' });
  t.is(world.authority.orders.length, 1);
  await world.clock.advance('11m');
  t.is(world.authority.orders.length, 1);
  await world.untilCertified();
  t.deepEqual(
    world.authority.requests.filter((one) => one.includes('/chall/')),
    ['POST /chall/0/http-01', 'POST /chall/1/tls-alpn-01'],
  );
});

test("a customer's tracking host is asked for once its DNS leads here, and holds nobody up before", async (t) => {
  const world = await start(t, {
    zone: { 'track.sender.invalid': { A: ['127.0.0.1'], AAAA: ['2001:db8::1'] } },
  });
  const [{ id }] = await world.db('domains').select('id');
  await setDomainTracking(world.db, id, { clicks: true, host: 'track.sender.invalid' });
  const wrong = await world.untilFailed('track.sender.invalid', 3);
  t.like(wrong, {
    type: 'dns-elsewhere',
    text: 'track.sender.invalid leads to 2001:db8::1, which is not an address of this server',
  });
  await world.untilCertified();
  t.deepEqual(
    world.authority.orders.map(({ host }) => host),
    ['postern.invalid'],
  );
  world.dns.set({ 'track.sender.invalid': { A: ['127.0.0.1'] } });
  await world.untilCertified('track.sender.invalid');
  t.is((await world.https('/t/o/none', 'track.sender.invalid')).status, 404);
  t.is((await world.https('/health/live')).status, 200, 'each host has its own');
});

test('the authority’s failure pauses every host, longer each time, and Retry-After is respected', async (t) => {
  const world = await start(t, {
    prepare: (authority) => {
      authority.script = (path) => (path === '/dir' ? { status: 503 } : undefined);
    },
  });
  await world.untilFailed('postern.invalid', 0);
  await world.clock.jump('1h');
  const tries = () => world.authority.requests.length;
  for (let hour = 0; hour < 24; hour++)
    for (let at = 0; at < 6; at++) {
      await world.clock.jump('10m');
      await world.clock.advance('11s');
    }
  t.true(tries() >= 10 && tries() <= 50, `${tries()} requests in a day`);
  world.authority.script = (path) =>
    path === '/order'
      ? {
          status: 429,
          headers: { 'retry-after': '86400' },
          body: problem('rateLimited', 'too many certificates'),
        }
      : undefined;
  t.like(
    await world.clock.passUntil(
      async () => {
        const { problem } = await world.rowOf('postern.invalid');
        return problem.includes('rateLimited') && JSON.parse(problem);
      },
      { step: '1m' },
    ),
    { text: 'too many certificates' },
  );
  world.authority.script = () => undefined;
  await world.clock.jump('23h');
  await world.clock.advance('11s');
  t.is(world.authority.orders.length, 0);
  await world.clock.jump('1h');
  await world.untilCertified();
});

test('an authority that talks without end or answers nonsense is given up, and its certificate must fit', async (t) => {
  const endless = 'x'.repeat(300_000);
  const world = await start(t, {
    prepare: (authority) => {
      authority.script = (path) => (path === '/dir' ? { status: 200, body: endless } : undefined);
    },
  });
  const said: string[] = [];
  const next = async (text: RegExp) => {
    const found = await world.clock.passUntil(
      async () => text.exec((await world.rowOf('postern.invalid')).problem ?? '')?.[0],
      { step: '1m' },
    );
    said.push(found);
  };
  await next(/an answer is larger than 256 KB/);
  world.authority.script = (path) => (path === '/dir' ? { status: 200, body: 'nonsense' } : undefined);
  await next(/Unable to locate API resource/);
  const other = world.authority.issue('postern.invalid').chain;
  world.authority.script = (path) => (path.startsWith('/cert/') ? { status: 200, body: other } : undefined);
  await next(/a certificate that is not the one of the order/);
  t.is((await world.rowOf('postern.invalid')).chain, null);
  world.authority.script = () => undefined;
  await world.untilCertified();
  t.is(said.length, 3);
});

/** Verified domains of one organization, each with a tracking host whose DNS leads here. */
async function addTrackingHosts(world: AcmeWorld, name: string, count: number): Promise<string[]> {
  const { orgId } = await asNewTenant(world);
  const now = Date.now();
  const hosts = Array.from({ length: count }, (_, n) => `t.${name}${n}.invalid`);
  world.dns.set(Object.fromEntries(hosts.map((host) => [host, { A: ['127.0.0.1'] }])));
  for (const host of hosts) {
    const key = { dkimSelector: 's', dkimPublicKey: 'p', dkimPrivateKey: 'k' };
    const id = await insertDomain(world.db, { orgId, name: host.slice(2), ...key }, now);
    await setDomainStatus(world.db, id!, 'verified', now);
    await setDomainTracking(world.db, id!, { clicks: true, host });
  }
  return hosts;
}

test('twenty new hosts of an organization are asked for in a day, and those of others do not wait', async (t) => {
  const world = await start(t);
  const many = await addTrackingHosts(world, 'many', 23);
  const [other] = await addTrackingHosts(world, 'other', 1);
  await world.untilCertified(other);
  const problems = () =>
    world.db('certificates').whereIn('host', many).where('problem', 'like', '%new-hosts%').pluck('host');
  await world.clock.passUntil(async () => (await problems()).length === 3);
  const asked = () => world.authority.orders.filter(({ host }) => many.includes(host)).length;
  t.is(asked(), 20);
  await world.clock.advance('2h');
  t.is(asked(), 20);
  await world.clock.jump('23h');
  await world.clock.passUntil(() => asked() === 23);
  t.pass();
});

test('a limit of the authority on a customer’s host pauses the hosts of that customer only', async (t) => {
  const world = await start(t);
  await world.untilCertified();
  world.authority.script = (path) =>
    path === '/order' ? { status: 429, body: problem('rateLimited', 'too many new orders') } : undefined;
  const many = await addTrackingHosts(world, 'many', 3);
  await world.clock.passUntil(async () => {
    const rows = await world.db('certificates').whereIn('host', many).select('problem', 'attempt_at');
    const isLimited = rows.some((row) => row.problem?.includes('rateLimited'));
    return isLimited && rows.every((row) => row.attempt_at > world.clock.now());
  });
  world.authority.script = () => undefined;
  const [other] = await addTrackingHosts(world, 'other', 1);
  const { resume_at } = await world.db('acme_accounts').first();
  t.true(resume_at <= world.clock.now(), 'the account is not paused');
  await world.untilCertified(other);
  for (const host of many) await world.untilCertified(host);
});
