/** MTA-STS: from what a domain publishes to what is demanded of each of its hosts (RFC 8461). */
import test, { type ExecutionContext } from 'ava';
import { type ManualClock, manualClock } from '#lab/clock.ts';
import { startDns, type Zone } from '#lab/dns/dns.ts';
import { policy, startPolicyHost, trustAuthority } from '#lab/mx/policy-host.ts';
import { table } from '#lab/table.ts';
import { until } from '#lab/until.ts';
import type { DaneFinding } from '#mail/deliver/route/dane-records.ts';
import { createFetchPolicy } from '#mail/deliver/route/fetch-mta-sts.ts';
import { createSts, type StoredPolicy } from '#mail/deliver/route/mta-sts.ts';
import { createResolver } from '#mail/deliver/route/resolver.ts';
import type { PersistentCache } from '#platform/base/persistent-cache.ts';

trustAuthority();

const minute = 60_000;
const day = 24 * 3600_000;

const published = (id: string): Zone => ({ '_mta-sts.there.invalid': { TXT: [`v=STSv1; id=${id};`] } });

const opportunistic = { tls: { policy: 'opportunistic' } };
const protectedHost = { tls: { policy: 'mta-sts' } };

/** What is remembered, as mail/queue/rows/learned-rows.ts keeps it, for as long as the test runs. */
function memory(
  clock: ManualClock,
): PersistentCache<StoredPolicy> & { kept: Map<string, { lapsesAt: number }> } {
  const kept = new Map<string, { value: StoredPolicy; lapsesAt: number }>();
  return {
    kept,
    async get(name) {
      const entry = kept.get(name);
      return entry && entry.lapsesAt > clock.now() ? entry.value : null;
    },
    async set(name, value, ttlMs) {
      kept.set(name, { value, lapsesAt: clock.now() + ttlMs });
    },
  };
}

/** Without what is only for reports. */
function demanded({ tls: { sts: _, stsProblem: __, ...tls }, ...rest }: DaneFinding): DaneFinding {
  return { tls, ...rest };
}

/** A domain there.invalid with the policy given under the id "one", and everything that a test may turn. */
async function start(t: ExecutionContext, text: string) {
  const host = await startPolicyHost({ 'there.invalid': text });
  t.teardown(host.close);
  const dns = await startDns({ ...published('one'), 'mta-sts.there.invalid': { A: [host.host] } });
  t.teardown(dns.close);
  const clock = manualClock(Date.UTC(2026, 0, 1));
  const policies = memory(clock);
  const resolve = createResolver([dns.address]);
  const fetchPolicy = createFetchPolicy({ resolve, allowPrivate: true, port: host.port });
  const create = (timeoutMs = 60_000) => createSts({ resolve, fetchPolicy, policies, clock, timeoutMs });
  const sts = create();
  const findWhole = async (name = 'mx1.invalid') => (await sts('there.invalid'))(name);
  const find = async (name?: string) => demanded(await findWhole(name));
  return { host, dns, clock, policies, create, find, findWhole };
}

test('under a policy of mode enforce a host that matches is to be verified, another must not be used', async (t) => {
  const { find } = await start(t, policy('enforce', ['mx1.invalid', '*.mail.invalid']));
  t.deepEqual(await find('mx1.invalid'), protectedHost);
  t.deepEqual(await find('MX1.invalid'), protectedHost);
  t.deepEqual(await find('a.mail.invalid'), protectedHost);
  for (const name of ['mx2.invalid', 'a.mx1.invalid', 'mail.invalid', 'a.b.mail.invalid']) {
    const { result } = await find(name);
    t.is(result?.kind, 'tls-required', name);
    t.deepEqual(result, {
      kind: 'tls-required',
      detail: `${name} is not among the hosts of the domain's MTA-STS policy (mx1.invalid, *.mail.invalid)`,
    });
  }
});

test('what a report quotes: the lines of the policy, and whether it names the host', async (t) => {
  const { findWhole, host, dns } = await start(t, policy('testing', ['mx1.invalid']));
  const text = ['version: STSv1', 'mode: testing', 'mx: mx1.invalid', 'max_age: 604800'];
  t.deepEqual((await findWhole()).tls.sts, { text, isNamed: true });
  t.deepEqual((await findWhole('mx2.invalid')).tls.sts, { text, isNamed: false });
  const other = await start(t, 'no policy');
  t.regex((await other.findWhole()).tls.stsProblem!, /could not be fetched/);
  host.policies['there.invalid'] = 'no policy';
  dns.set(published('two'));
  t.deepEqual((await findWhole()).tls.sts, { text, isNamed: true }, 'the stored policy still applies');
});

test('a policy of mode testing demands nothing, and what enforce would have done is noted', async (t) => {
  const { find } = await start(t, policy('testing', ['mx1.invalid']));
  const matching = await find('mx1.invalid');
  t.like(matching, opportunistic);
  t.regex(matching.tls.note ?? '', /testing mode; enforced, it would demand a valid certificate/);
  const other = await find('mx2.invalid');
  t.like(other, { ...opportunistic, result: undefined });
  t.regex(
    other.tls.note ?? '',
    /testing mode; enforced, it would forbid this host: mx2.invalid is not among/,
  );
});

test('a policy of mode none demands nothing', async (t) => {
  const { find } = await start(t, policy('none', []));
  t.deepEqual(await find(), opportunistic);
});

test('a domain without the record costs one TXT query', async (t) => {
  const { dns, host, find } = await start(t, policy('enforce', ['mx1.invalid']));
  dns.set({ '_mta-sts.there.invalid': null });
  t.deepEqual(await find('mx2.invalid'), opportunistic);
  t.deepEqual(dns.queries, [{ name: '_mta-sts.there.invalid', type: 'TXT' }]);
  t.deepEqual(host.asked, []);
});

const unreadable = [
  'v=STSv1',
  'v=STSv1;',
  'v=STSv2; id=1;',
  'id=1; v=STSv1;',
  'v=STSv1; id=a b;',
  'v=spf1 -all',
];

for (const text of unreadable) {
  test(`a record "${text}" is none`, async (t) => {
    const { dns, host, find } = await start(t, policy('enforce', ['mx1.invalid']));
    dns.set({ '_mta-sts.there.invalid': { TXT: [text] } });
    t.deepEqual(await find('mx2.invalid'), opportunistic);
    t.deepEqual(host.asked, []);
  });
}

test('two records are none, and one among others is one', async (t) => {
  const { dns, find } = await start(t, policy('enforce', ['mx1.invalid']));
  dns.set({ '_mta-sts.there.invalid': { TXT: ['v=STSv1; id=one;', 'v=STSv1; id=two;'] } });
  t.deepEqual(await find('mx2.invalid'), opportunistic);
  dns.set({ '_mta-sts.there.invalid': { TXT: ['v=spf1 -all', 'v=STSv1; id=one;'] } });
  t.is((await find('mx2.invalid')).result?.kind, 'tls-required');
});

test('the policy is fetched once while the id is the same, and remembered for as long as it says', async (t) => {
  const { host, clock, policies, find, create } = await start(t, policy('enforce', ['mx1.invalid'], 7200));
  await find();
  await find();
  t.is(policies.kept.get('there.invalid')?.lapsesAt, clock.now() + 7200_000);
  const restarted = await create()('there.invalid');
  t.deepEqual(demanded(restarted('mx1.invalid')), protectedHost);
  t.is(host.asked.length, 1);
  await clock.advance(7200_000);
  await find();
  t.is(host.asked.length, 2, 'it has lapsed');
});

test('a new id brings the new policy', async (t) => {
  const { host, dns, find } = await start(t, policy('enforce', ['mx1.invalid']));
  t.is((await find('mx2.invalid')).result?.kind, 'tls-required');
  host.policies['there.invalid'] = policy('enforce', ['mx2.invalid']);
  t.is((await find('mx2.invalid')).result?.kind, 'tls-required', 'the id tells when to look');
  dns.set(published('two'));
  t.deepEqual(await find('mx2.invalid'), protectedHost);
});

test('a remembered policy holds when nothing newer can be had, whatever the reason', async (t) => {
  const { host, dns, find } = await start(t, policy('enforce', ['mx1.invalid']));
  await find();
  for (const record of [null, 'SERVFAIL', { TXT: ['v=STSv1; id=b@d;'] }] as const) {
    dns.set({
      '_mta-sts.there.invalid': record && (typeof record === 'string' ? record : { TXT: [...record.TXT] }),
    });
    t.deepEqual(await find(), protectedHost);
  }
  host.policies = {};
  delete host.policies['there.invalid'];
  dns.set(published('two'));
  t.deepEqual(await find(), protectedHost);
  t.is((await find('mx2.invalid')).result?.kind, 'tls-required');
});

test('an unlucky fetch without a remembered policy is no policy, and is not repeated for five minutes', async (t) => {
  const { host, dns, clock, find } = await start(t, policy('enforce', ['mx1.invalid']));
  const good = host.policies['there.invalid']!;
  host.policies['there.invalid'] = (_request, response) => void response.writeHead(503).end();
  const first = await find('mx2.invalid');
  t.is(first.result, undefined);
  t.is(first.tls.note, 'its MTA-STS policy could not be fetched: the policy host answers HTTP 503');
  host.policies['there.invalid'] = good;
  await clock.advance(4 * minute);
  t.deepEqual(await find('mx2.invalid'), first);
  t.is(host.asked.length, 1);
  await clock.advance(minute);
  t.is((await find('mx2.invalid')).result?.kind, 'tls-required');
  t.is(host.asked.length, 2);
  dns.set(published('two'));
  await find();
  t.is(host.asked.length, 3);
});

test('another id is tried at once after a failure', async (t) => {
  const { host, dns, find } = await start(t, 'no policy at all');
  t.regex((await find()).tls.note ?? '', /could not be fetched: Invalid version/);
  host.policies['there.invalid'] = policy('enforce', ['mx1.invalid']);
  dns.set(published('two'));
  t.deepEqual(await find(), protectedHost);
});

test('a policy in use is fetched anew after a day, and nobody waits for that', async (t) => {
  const { host, clock, policies, find } = await start(t, policy('enforce', ['mx1.invalid'], 3 * 24 * 3600));
  await find();
  await clock.advance(day);
  host.policies['there.invalid'] = (_request, response) =>
    void response
      .writeHead(200, { 'content-type': 'text/plain' })
      .end(policy('enforce', ['mx1.invalid'], 7200));
  t.deepEqual(await find(), protectedHost);
  const lapsesAt = clock.now() + 7200_000;
  await until(() => policies.kept.get('there.invalid')?.lapsesAt === lapsesAt, {
    what: () => 'the new policy',
  });
});

test('a slow policy host keeps no mail waiting, and its policy holds for the mails after', async (t) => {
  const { host, create } = await start(t, '');
  let answer = () => {};
  host.policies['there.invalid'] = (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/plain' });
    answer = () => response.end(policy('enforce', ['mx1.invalid']));
  };
  const sts = create(100);
  t.is((await sts('there.invalid'))('mx2.invalid').tls.note, 'its MTA-STS policy did not come in time');
  await until(() => host.asked.length === 1, { what: () => 'the policy host to be asked' });
  answer();
  await until(async () => (await sts('there.invalid'))('mx2.invalid').result?.kind === 'tls-required', {
    what: () => 'the policy to hold',
  });
  t.is(host.asked.length, 1);
});

test('mails that ask at the same time share one fetch', async (t) => {
  const { host, find } = await start(t, policy('enforce', ['mx1.invalid']));
  await Promise.all([find(), find(), find()]);
  t.is(host.asked.length, 1);
});

test('where the cache fails the policy still holds', async (t) => {
  const { policies, find } = await start(t, policy('enforce', ['mx1.invalid']));
  policies.get = () => Promise.reject(new Error('disk'));
  policies.set = () => Promise.reject(new Error('disk'));
  t.is((await find('mx2.invalid')).result?.kind, 'tls-required');
});

const broken: [what: string, text: string][] = table('route/broken-policies');

for (const [what, text] of broken) {
  test(`a policy with ${what} is none`, async (t) => {
    const { policies, find } = await start(t, text);
    const { tls, result } = await find('mx2.invalid');
    t.is(result, undefined);
    t.regex(tls.note ?? '', /could not be fetched: (Invalid|Missing) /);
    t.is(policies.kept.size, 0);
  });
}

test('lines ended by LF alone, unknown fields and a repeated field are read as the RFC says', async (t) => {
  const text = 'version: STSv1\nmode: enforce\nmode: none\nx-new: 1\nmx: mx1.invalid\nmax_age: 86400';
  const { find } = await start(t, text);
  t.deepEqual(await find(), protectedHost);
});
