/** From a domain to its hosts: what DNS means, what is kept and for how long, and who comes first. */

import test, { type ExecutionContext } from 'ava';
import { manualClock } from '#lab/clock.ts';
import { startDns, type Zone } from '#lab/dns/dns.ts';
import { createResolver } from '#mail/deliver/route/resolver.ts';
import type { Exchanger, Host, Protect, Route } from '#mail/deliver/route/route.ts';
import { createRouteCache, type RouteCacheParts } from '#mail/deliver/route/route-cache.ts';
import { interleaved, shuffled } from '#mail/deliver/route/shuffle.ts';
import type { Resolve } from '#platform/base/net/resolve.ts';
import type { DestinationShape } from '#platform/values/destination-shape.ts';

const shape: DestinationShape = {
  connections: 20,
  startWith: 5,
  perMinute: null,
  mailsPerConnection: 100,
  idleMs: 5000,
  tls: 'opportunistic',
};

const opportunistic: Protect = async (_domain, hosts) =>
  hosts.map((host) => ({ ...host, tls: { policy: 'opportunistic' } }));

function routesOf(resolve: Resolve, own: Partial<RouteCacheParts> = {}) {
  const clock = manualClock();
  const routes = createRouteCache({
    resolve,
    allowPrivate: true,
    protect: opportunistic,
    destinationOf: (domain, hosts) => ({ name: [...hosts].sort().join(',') || domain, shape }),
    clock,
    random: Math.random,
    ...own,
  });
  return { routes, clock };
}

async function start(t: ExecutionContext, zone: Zone, own: Partial<RouteCacheParts> = {}) {
  const dns = await startDns(zone);
  t.teardown(dns.close);
  const asked = (name: string, type: string) =>
    dns.queries.filter((query) => query.name === name && query.type === type).length;
  return { dns, asked, ...routesOf(createResolver([dns.address]), own) };
}

function hostsOf(route: Route | null): Host[] {
  if (route === null || 'result' in route) throw new Error(`no hosts: ${JSON.stringify(route)}`);
  return route.hosts;
}

const namesOf = (route: Route | null) => hostsOf(route).map(({ name }) => name);
const resultKind = (route: Route) => ('result' in route ? route.result.kind : 'none');

test('each host comes once, with all its addresses, the best first', async (t) => {
  const { routes } = await start(t, {
    'there.invalid': { MX: ['20 mx2.invalid', '10 MX1.invalid', '30 mx1.invalid'] },
    'mx1.invalid': { A: ['127.0.0.2', '127.0.0.3'], AAAA: ['::1'] },
    'mx2.invalid': { A: ['127.0.0.4'] },
  });
  const route = await routes.find('there.invalid');
  t.is(route.destination.name, 'mx1.invalid,mx2.invalid');
  const hosts = hostsOf(route).map(({ name, addresses }) => ({ name, addresses: addresses.toSorted() }));
  t.deepEqual(hosts, [
    { name: 'mx1.invalid', addresses: ['127.0.0.2', '127.0.0.3', '::1'] },
    { name: 'mx2.invalid', addresses: ['127.0.0.4'] },
  ]);
});

test('a domain without MX is its own host, with the addresses of both families', async (t) => {
  const { routes } = await start(t, { 'bare.invalid': { A: ['127.0.0.2'], AAAA: ['::1'] } });
  const route = await routes.find('bare.invalid');
  t.is(route.destination.name, 'bare.invalid');
  t.deepEqual(hostsOf(route), [
    { name: 'bare.invalid', addresses: ['::1', '127.0.0.2'], tls: { policy: 'opportunistic' } },
  ]);
});

test('eight hosts with eight addresses each are enough', async (t) => {
  const many = Array.from({ length: 12 }, (_, n) => n + 1);
  const { routes } = await start(t, {
    'many.invalid': { MX: many.map((n) => `${n} mx${n}.invalid`) },
    ...Object.fromEntries(
      many.map((n) => [
        `mx${n}.invalid`,
        { A: many.map((last) => `127.0.${n}.${last}`), AAAA: many.map((last) => `fd00::${n}:${last}`) },
      ]),
    ),
  });
  const hosts = hostsOf(await routes.find('many.invalid'));
  t.deepEqual(
    hosts.map(({ name }) => name),
    many.slice(0, 8).map((n) => `mx${n}.invalid`),
  );
  for (const { addresses } of hosts) {
    t.is(addresses.length, 8);
    t.is(addresses.filter((address) => address.includes(':')).length, 4, 'both families are there');
  }
});

test('an MX whose look-up fails is left out; the destination keeps its name', async (t) => {
  const { routes } = await start(t, {
    'there.invalid': { MX: ['10 mx1.invalid', '20 mx2.invalid'] },
    'mx1.invalid': 'SERVFAIL',
    'mx2.invalid': { A: ['127.0.0.3'] },
  });
  const route = await routes.find('there.invalid');
  t.deepEqual(namesOf(route), ['mx2.invalid']);
  t.is(route.destination.name, 'mx1.invalid,mx2.invalid');
});

const cases: [string, Zone[string], string][] = [
  ['a null MX', { MX: ['0 .'] }, 'null-mx'],
  ['neither MX nor address', { TXT: ['v=spf1 -all'] }, 'no-mail-host'],
  ['a server failure', 'SERVFAIL', 'dns-failed'],
  ['an MX that leads nowhere', { MX: ['10 gone.invalid'] }, 'dns-failed'],
  ['an address that may not be', { A: ['0.0.0.0'] }, 'private-address'],
];
for (const [what, entry, kind] of cases) {
  test(`${what} is a result (${kind}), and the destination is the domain`, async (t) => {
    const { routes } = await start(t, { 'there.invalid': entry });
    const route = await routes.find('there.invalid');
    t.is(resultKind(route), kind);
    t.is(route.destination.name, 'there.invalid');
  });
}

test('private addresses are left out, and when there is no other the domain is refused', async (t) => {
  const zone: Zone = {
    'half.invalid': { MX: ['10 inside.invalid', '20 mixed.invalid'] },
    'inside.invalid': { A: ['10.0.0.1'], AAAA: ['fd00::1', '::ffff:127.0.0.1'] },
    'mixed.invalid': { A: ['127.0.0.1', '8.8.8.8'] },
    'whole.invalid': { MX: ['10 inside.invalid'] },
    'azure.invalid': { A: ['168.63.129.16', '9.9.9.9'], AAAA: ['64:ff9b::a83f:8110', '2002:a83f:8110::1'] },
    'azure-only.invalid': { A: ['168.63.129.16'], AAAA: ['::ffff:168.63.129.16'] },
  };
  const { routes } = await start(t, zone, { allowPrivate: false });
  const hosts = hostsOf(await routes.find('half.invalid'));
  t.deepEqual(
    hosts.map(({ name, addresses }) => ({ name, addresses })),
    [{ name: 'mixed.invalid', addresses: ['8.8.8.8'] }],
  );
  t.is(resultKind(await routes.find('whole.invalid')), 'private-address');
  t.deepEqual(hostsOf(await routes.find('azure.invalid'))[0]!.addresses, ['9.9.9.9']);
  t.is(resultKind(await routes.find('azure-only.invalid')), 'private-address');
});

const twins: Zone = {
  'twins.invalid': { MX: ['10 a.invalid', '10 b.invalid', '20 spare.invalid'] },
  'a.invalid': { A: ['127.0.0.2'] },
  'b.invalid': { A: ['127.0.0.3'] },
  'spare.invalid': { A: ['127.0.0.4'] },
};

test('hosts of equal preference come in a new order at every call, from one look-up', async (t) => {
  const { routes, asked } = await start(t, twins);
  const firsts: Record<string, number> = { 'a.invalid': 0, 'b.invalid': 0 };
  for (let n = 0; n < 400; n++) {
    const names = namesOf(await routes.find('twins.invalid'));
    t.is(names[2], 'spare.invalid');
    firsts[names[0]!]! += 1;
  }
  // 200 each, with a standard deviation of 10.
  t.true(Math.abs(firsts['a.invalid']! - 200) < 70, JSON.stringify(firsts));
  t.is(asked('twins.invalid', 'MX'), 1);
});

test('a route is kept five minutes, a result ten seconds', async (t) => {
  const { routes, clock, asked, dns } = await start(t, { ...twins, 'broken.invalid': 'REFUSED' });
  t.is(routes.peek('twins.invalid'), null);
  await routes.find('twins.invalid');
  await routes.find('broken.invalid');
  const askedOfBroken = asked('broken.invalid', 'MX');
  await clock.advance(9_999);
  t.is(resultKind(await routes.find('broken.invalid')), 'dns-failed');
  t.is(asked('broken.invalid', 'MX'), askedOfBroken);
  dns.set({ 'broken.invalid': { A: ['127.0.0.2'] } });
  await clock.advance(1);
  t.is(routes.peek('broken.invalid'), null);
  t.deepEqual(namesOf(await routes.find('broken.invalid')), ['broken.invalid']);
  await clock.advance('4m');
  t.is(namesOf(routes.peek('twins.invalid')).length, 3);
  t.is(asked('twins.invalid', 'MX'), 1);
  await clock.advance('1m');
  t.is(routes.peek('twins.invalid'), null);
  await routes.find('twins.invalid');
  t.is(asked('twins.invalid', 'MX'), 2);
});

test('a route that was forgotten is looked up again', async (t) => {
  const { routes, dns } = await start(t, { 'there.invalid': { A: ['127.0.0.2'] } });
  await routes.find('there.invalid');
  dns.set({ 'there.invalid': { MX: ['10 mx1.invalid'] }, 'mx1.invalid': { A: ['127.0.0.2'] } });
  t.deepEqual(namesOf(await routes.find('there.invalid')), ['there.invalid']);
  routes.forget('there.invalid');
  t.is(routes.peek('there.invalid'), null);
  t.deepEqual(namesOf(await routes.find('there.invalid')), ['mx1.invalid']);
});

test('calls for one domain share the look-up under way, and its protection', async (t) => {
  const seen: [string, Exchanger[]][] = [];
  const protect: Protect = (domain, hosts) => {
    seen.push([domain, hosts]);
    return opportunistic(domain, hosts);
  };
  const { routes, asked } = await start(t, { 'there.invalid': { A: ['127.0.0.2'] } }, { protect });
  await Promise.all(Array.from({ length: 50 }, () => routes.find('there.invalid')));
  t.is(asked('there.invalid', 'MX'), 1);
  t.deepEqual(seen, [['there.invalid', [{ name: 'there.invalid', addresses: ['127.0.0.2'] }]]]);
});

test('a route that is forgotten while it is looked up is not kept', async (t) => {
  const { promise: policy, resolve: decide } = Promise.withResolvers<void>();
  const protect: Protect = async (domain, hosts) => {
    await policy;
    return opportunistic(domain, hosts);
  };
  const { routes } = await start(t, { 'there.invalid': { A: ['127.0.0.2'] } }, { protect });
  const finding = routes.find('there.invalid');
  routes.forget('there.invalid');
  decide();
  t.deepEqual(namesOf(await finding), ['there.invalid']);
  t.is(routes.peek('there.invalid'), null);
});

test('a policy may forbid a host; an error in it is a result of ours', async (t) => {
  const result = { kind: 'tls-required', detail: 'the policy names other hosts' } as const;
  const protect: Protect = async (domain, hosts) => {
    if (domain === 'odd.invalid') throw new Error('no such policy');
    return hosts.map((host) => ({
      ...host,
      tls: { policy: 'mta-sts' },
      ...(host.name === 'a.invalid' && { result }),
    }));
  };
  const zone: Zone = { ...twins, 'odd.invalid': { A: ['127.0.0.2'] } };
  const { routes } = await start(t, zone, { protect });
  t.is(resultKind(await routes.find('odd.invalid')), 'internal');
  const hosts = hostsOf(await routes.find('twins.invalid'));
  t.deepEqual(hosts.find(({ name }) => name === 'a.invalid')?.result, result);
});

test('of a flood of domains three hundred are looked up at once', async (t) => {
  let now = 0;
  let max = 0;
  const { routes } = routesOf(async (_name, type) => {
    if (type !== 'MX') return ['192.0.2.1'];
    max = Math.max(max, ++now);
    await new Promise((resolve) => setImmediate(resolve));
    now -= 1;
    return [{ exchange: 'mx1.invalid', priority: 10 }];
  });
  // The second flood finds the places as the first left them.
  for (const flood of ['a', 'b']) {
    const domains = Array.from({ length: 500 }, (_, n) => `${flood}${n}.invalid`);
    const found = await Promise.all(domains.map((domain) => routes.find(domain)));
    t.true(found.every((route) => namesOf(route)[0] === 'mx1.invalid'));
  }
  t.is(max, 300);
});

test('shuffling makes every order as likely', (t) => {
  const counts = new Map<string, number>();
  for (let n = 0; n < 6000; n++) {
    const order = shuffled(['a', 'b', 'c'], Math.random).join('');
    counts.set(order, (counts.get(order) ?? 0) + 1);
  }
  t.is(counts.size, 6);
  // 1000 each, with a standard deviation of 29.
  for (const [order, count] of counts) t.true(Math.abs(count - 1000) < 200, `${order} ${count}`);
});

test('families alternate, the first leading, until one runs out', (t) => {
  t.deepEqual(interleaved(['a', 'b', 'c'], ['1']), ['a', '1', 'b', 'c']);
  t.deepEqual(interleaved([], ['1', '2']), ['1', '2']);
});
