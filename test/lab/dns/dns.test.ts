/** The fake DNS against node's own resolver (c-ares): what each line of a zone literal means to a real client. */
import { Resolver } from 'node:dns/promises';
import test, { type ExecutionContext } from 'ava';
import { startDns, type Zone } from './dns.ts';

async function start(t: ExecutionContext, zone: Zone, timeout = 300_000) {
  const dns = await startDns(zone);
  t.teardown(dns.close);
  const resolver = new Resolver({ timeout, tries: 1 });
  resolver.setServers([dns.address]);
  return { dns, resolver };
}

test('records of every type come back as they were given', async (t) => {
  const { resolver } = await start(t, {
    'example.invalid': {
      MX: ['10 mx1.example.invalid', '20 mx2.example.invalid'],
      TXT: ['v=spf1 -all', 'two'],
    },
    'mx1.example.invalid': { A: ['127.0.0.2', '127.0.0.3'], AAAA: ['::1'] },
    '_25._tcp.mx1.example.invalid': { TLSA: ['3 1 1 00ff'] },
  });
  t.deepEqual(await resolver.resolveMx('example.invalid'), [
    { type: 'MX', priority: 10, exchange: 'mx1.example.invalid' },
    { type: 'MX', priority: 20, exchange: 'mx2.example.invalid' },
  ]);
  t.deepEqual(await resolver.resolveTxt('example.invalid'), [['v=spf1 -all'], ['two']]);
  t.deepEqual(await resolver.resolve4('mx1.example.invalid'), ['127.0.0.2', '127.0.0.3']);
  t.deepEqual(await resolver.resolve6('mx1.example.invalid'), ['::1']);
  const [tlsa] = await resolver.resolveTlsa('_25._tcp.mx1.example.invalid');
  t.like(tlsa, { certUsage: 3, selector: 1, match: 1 });
  t.deepEqual(Buffer.from(tlsa!.data), Buffer.from([0x00, 0xff]));
});

test('a null MX names the root (RFC 7505)', async (t) => {
  const { resolver } = await start(t, { 'nomail.invalid': { MX: ['0 .'] } });
  t.deepEqual(await resolver.resolveMx('nomail.invalid'), [{ type: 'MX', priority: 0, exchange: '' }]);
});

test('a name that is not there, and a type that is not there', async (t) => {
  const { resolver } = await start(t, { 'a.b.invalid': { A: ['127.0.0.1'] } });
  await t.throwsAsync(resolver.resolve4('nobody.invalid'), { code: 'ENOTFOUND' });
  await t.throwsAsync(resolver.resolveMx('a.b.invalid'), { code: 'ENODATA' });
  await t.throwsAsync(
    resolver.resolve4('b.invalid'),
    { code: 'ENODATA' },
    'a name with names below it exists',
  );
});

test('failures, of a whole name and of one type', async (t) => {
  const { resolver } = await start(t, {
    'broken.invalid': 'SERVFAIL',
    'refused.invalid': 'REFUSED',
    'half.invalid': { MX: ['10 x.invalid'], A: 'SERVFAIL' },
  });
  await t.throwsAsync(resolver.resolve4('broken.invalid'), { code: 'ESERVFAIL' });
  await t.throwsAsync(resolver.resolve4('refused.invalid'), { code: 'EREFUSED' });
  const hasty = await start(t, { 'silent.invalid': 'TIMEOUT' }, 200);
  await t.throwsAsync(hasty.resolver.resolve4('silent.invalid'), { code: 'ETIMEOUT' });
  await t.throwsAsync(resolver.resolve4('half.invalid'), { code: 'ESERVFAIL' });
  t.is((await resolver.resolveMx('half.invalid')).length, 1);
});

test('a CNAME is followed; a loop of them is SERVFAIL', async (t) => {
  const { resolver } = await start(t, {
    'www.invalid': { CNAME: ['web.invalid'] },
    'web.invalid': { CNAME: ['host.invalid'] },
    'host.invalid': { A: ['127.0.0.9'] },
    'lost.invalid': { CNAME: ['nobody.invalid'] },
    'loop.invalid': { CNAME: ['loop.invalid'] },
  });
  t.deepEqual(await resolver.resolve4('www.invalid'), ['127.0.0.9']);
  t.deepEqual(await resolver.resolveCname('www.invalid'), ['web.invalid']);
  t.deepEqual(
    await resolver.resolveMx('www.invalid'),
    [],
    'c-ares calls an alias without data empty, not ENODATA',
  );
  await t.throwsAsync(resolver.resolve4('lost.invalid'), { code: 'ENOTFOUND' });
  await t.throwsAsync(resolver.resolve4('loop.invalid'), { code: 'ESERVFAIL' });
});

test('a long TXT value is split in strings, and what is too large for UDP comes by TCP', async (t) => {
  const long = 'k'.repeat(600);
  const many = Array.from({ length: 400 }, (_, n) => `127.0.${n >> 8}.${n & 255}`);
  const { dns, resolver } = await start(t, { 'key.invalid': { TXT: [long] }, 'many.invalid': { A: many } });
  t.deepEqual(await resolver.resolveTxt('key.invalid'), [['k'.repeat(255), 'k'.repeat(255), 'k'.repeat(90)]]);
  t.deepEqual((await resolver.resolve4('many.invalid')).toSorted(), many.toSorted());
  t.is(dns.queries.filter(({ name }) => name === 'many.invalid').length, 2, 'asked by UDP, then by TCP');
});
