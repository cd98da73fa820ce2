import { createSocket } from 'node:dgram';
import type { ResolverOptions } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import test, { type ExecutionContext } from 'ava';
import { startDns } from '#lab/dns/dns.ts';
import { findMx } from '#mail/deliver/route/mx.ts';
import { createResolver } from '#mail/deliver/route/resolver.ts';

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

test('the servers that the operator names are used, whatever they answer', async (t) => {
  const dns = await startDns({ 'there.invalid': 'REFUSED' });
  t.teardown(dns.close);
  const resolve = createResolver([dns.address], patience, () => t.fail() as never);
  await t.throwsAsync(resolve('there.invalid'), { code: 'EREFUSED' });
  dns.set({ 'there.invalid': { A: ['127.0.0.2'] } });
  t.deepEqual(await resolve('there.invalid'), ['127.0.0.2']);
});

/** What findMx says of a domain. */
async function found(servers: string[], domain: string, timeoutMs = 30_000) {
  const resolve = createResolver(servers, { timeoutMs, tries: 1 });
  const mx = await findMx(domain, { resolve, allowPrivate: true, random: () => 0 });
  return 'result' in mx ? mx.result : null;
}

test('a resolver that is silent, refuses or is not there is at fault, and not the domain', async (t) => {
  const silent = createSocket('udp4').bind(0, '127.0.0.1');
  await once(silent, 'listening');
  t.teardown(() => new Promise<void>((done) => silent.close(done)));
  const refusing = await startDns({ 'there.invalid': 'REFUSED', '': 'REFUSED', '.': 'REFUSED' });
  t.teardown(refusing.close);
  const gone = await startDns();
  await gone.close();
  for (const [server, says, timeoutMs] of [
    [`127.0.0.1:${silent.address().port}`, 'no answer in time', 300],
    [refusing.address, 'REFUSED'],
    [gone.address, 'connection refused'],
  ] as const) {
    t.deepEqual(await found([server], 'there.invalid', timeoutMs), {
      kind: 'resolver-failed',
      detail: `our DNS resolver does not answer: ${says} for there.invalid`,
    });
  }
});

test('a domain whose name servers fail or are silent is at fault, and not the resolver that answers', async (t) => {
  const dns = await startDns({
    'broken.invalid': 'SERVFAIL',
    'silent.invalid': 'TIMEOUT',
    'refused.invalid': 'REFUSED',
    'half.invalid': { MX: ['10 mx.half.invalid'] },
    'mx.half.invalid': 'SERVFAIL',
    'lame.invalid': { MX: ['10 nowhere.invalid'] },
  });
  t.teardown(dns.close);
  const said = async (domain: string, timeoutMs?: number) => {
    const result = await found([dns.address], domain, timeoutMs);
    t.is(result?.kind, 'dns-failed', domain);
    return result && 'detail' in result && result.detail;
  };
  t.is(await said('broken.invalid'), 'SERVFAIL from the name servers of broken.invalid');
  t.is(await said('silent.invalid', 300), 'no answer in time from the name servers of silent.invalid');
  t.is(await said('refused.invalid'), 'REFUSED from the name servers of refused.invalid');
  t.is(await said('half.invalid'), 'SERVFAIL from the name servers of mx.half.invalid');
  t.is(await said('lame.invalid'), 'no mail host of lame.invalid has an address in DNS');
});
