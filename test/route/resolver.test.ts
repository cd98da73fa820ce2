import type { ResolverOptions } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import test, { type ExecutionContext } from 'ava';
import { createResolver } from '../../src/route/resolver.ts';
import { startDns } from '../lab/dns/dns.ts';

const patience = { timeoutMs: 30_000, tries: 1 };

/** A system whose settings name another server each time that they are read; the last one from then on. */
async function start(t: ExecutionContext, ...zones: Parameters<typeof startDns>[0][]) {
  const servers = await Promise.all(zones.map((zone) => startDns(zone)));
  for (const server of servers) t.teardown(server.close);
  let reads = 0;
  const openSystem = (options: ResolverOptions) => {
    const resolver = new Resolver(options);
    resolver.setServers([servers[Math.min(reads, servers.length - 1)]!.address]);
    reads += 1;
    return resolver;
  };
  return { resolve: createResolver([], patience, openSystem), reads: () => reads };
}

test("the system's servers are read again after one has not answered, and then not for a while", async (t) => {
  const { resolve, reads } = await start(
    t,
    { 'there.invalid': 'REFUSED' },
    { 'there.invalid': { A: ['127.0.0.2'] }, 'broken.invalid': 'SERVFAIL' },
  );
  await t.throwsAsync(resolve('there.invalid'), { code: 'EREFUSED' });
  t.deepEqual(await resolve('there.invalid'), ['127.0.0.2']);
  for (let n = 0; n < 3; n++) await t.throwsAsync(resolve('broken.invalid'), { code: 'ESERVFAIL' });
  t.is(reads(), 2);
});

test('that there is no such name or no such record is an answer', async (t) => {
  const { resolve, reads } = await start(t, { 'there.invalid': { A: ['127.0.0.2'] } });
  await t.throwsAsync(resolve('nowhere.invalid'), { code: 'ENOTFOUND' });
  await t.throwsAsync(resolve('there.invalid', 'MX'), { code: 'ENODATA' });
  t.is(reads(), 1);
});

test("the operator's servers are those, whatever they answer", async (t) => {
  const dns = await startDns({ 'there.invalid': 'REFUSED' });
  t.teardown(dns.close);
  const resolve = createResolver([dns.address], patience, () => t.fail() as never);
  await t.throwsAsync(resolve('there.invalid'), { code: 'EREFUSED' });
  dns.set({ 'there.invalid': { A: ['127.0.0.2'] } });
  t.deepEqual(await resolve('there.invalid'), ['127.0.0.2']);
});
