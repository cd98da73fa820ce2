/** Domains are checked without a further call: pending ones are verified, verified ones whose DKIM record is gone are reported. */
import test from 'ava';
import { claimDueDomains } from '#accounts/rows/domain-checks.ts';
import { insertDomain } from '#accounts/rows/domains-table.ts';
import { insertOrganization } from '#accounts/rows/organizations.ts';
import { nextCheck } from '#accounts/watch-domains.ts';
import { journeyKinds } from '#lab/database/databases.ts';
import { openMigrated } from '#lab/database/open-migrated.ts';
import { dkimKey } from '#lab/dkim.ts';
import { sharedSecret, startNode } from '#lab/scenes/nodes.ts';
import { asNewTenant, startWorld, type World } from '#lab/scenes/world.ts';

const [minute, hour] = [60_000, 3_600_000];
const name = 'sender.invalid';
const record = `${dkimKey.selector}._domainkey.${name}`;

const domainOf = async (world: World, which = name) =>
  (await world.call('GET', `/api/public/domains/${which}`)).body.domain;
const eventsOf = async ({ db }: World) =>
  (await db('events').where('type', 'like', 'domain.%').orderBy('id')).map(
    ({ type, data }) => `${type} ${JSON.parse(data).domain}`,
  );

/** Lets time pass until the next check is due, and waits until its result is stored. */
async function nextChecked(world: World, which = name) {
  const { db, clock } = world;
  const before = (await domainOf(world, which)).checkedAt;
  const { check_at } = await db('domains').where({ name: which }).first('check_at');
  await clock.jump(Math.max(Number(check_at) - clock.now(), 0));
  return clock.passUntil(
    async () => {
      const domain = await domainOf(world, which);
      return domain.checkedAt !== before && domain;
    },
    { step: '10s' },
  );
}

for (const kind of journeyKinds) {
  test(`${kind}: a pending domain is verified when its record appears`, async (t) => {
    const world = await startWorld(t, { database: kind });
    const { body } = await world.call('POST', '/api/public/domains', { body: '{"name":"new.invalid"}' });
    const [dkim] = body.records;
    t.is((await nextChecked(world, 'new.invalid')).status, 'pending');
    world.dns.set({ [dkim.name]: { TXT: [dkim.value] } });
    t.is((await nextChecked(world, 'new.invalid')).status, 'verified');
    t.deepEqual(await eventsOf(world), ['domain.verified new.invalid']);
    const { body: feed } = await world.call('GET', '/api/public/events?type=domain.verified');
    t.deepEqual(feed.events[0].data, { domain: 'new.invalid', record: dkim.name });
  });

  test(`${kind}: a verified domain whose record is gone is reported after two checks, and still sends`, async (t) => {
    const world = await startWorld(t, { database: kind });
    await nextChecked(world);
    world.dns.set({ [record]: { TXT: ['v=DKIM1; p=AAAA'] } });
    const first = await nextChecked(world);
    t.deepEqual([first.status, first.failingSince], ['verified', first.checkedAt]);
    t.deepEqual(await eventsOf(world), []);
    const second = await nextChecked(world);
    t.is(second.failingSince, first.failingSince);
    t.deepEqual(await eventsOf(world), [`domain.unverified ${name}`]);
    t.is((await world.send({ to: 'ann@there.invalid' })).status, 200);

    world.dns.set({ [record]: { TXT: [`v=DKIM1; p=${dkimKey.publicKey}`] } });
    t.is((await nextChecked(world)).failingSince, null);
    t.deepEqual(await eventsOf(world), [`domain.unverified ${name}`, `domain.verified ${name}`]);
  });
}

test('with "refuse", sends are refused until the record is right again', async (t) => {
  const world = await startWorld(t, { settings: { POSTERN_UNVERIFIED_DOMAINS: 'refuse' } });
  await nextChecked(world);
  world.dns.set({ [record]: { TXT: ['v=DKIM1; p=AAAA'] } });
  await nextChecked(world);
  t.is((await nextChecked(world)).status, 'pending');
  t.is((await world.send({ to: 'ann@there.invalid' })).body.error, 'DOMAIN_NOT_VERIFIED');
  world.dns.set({ [record]: { TXT: [`v=DKIM1; p=${dkimKey.publicKey}`] } });
  t.is((await nextChecked(world)).status, 'verified');
  t.is((await world.send({ to: 'ann@there.invalid' })).status, 200);
});

test('keep: a domain that another organization has now is taken from who had it, soon after', async (t) => {
  const world = await startWorld(t);
  await nextChecked(world);
  const other = await asNewTenant(world);
  const { db, dns, clock } = world;
  const stateOf = async ({ orgId }: World) =>
    db('domains').where({ name, org_id: orgId }).first('status', 'failures', 'check_at');
  const theirs = { dkim_selector: 'theirs', status: 'pending', verified_at: null };
  await db('domains').where({ name, org_id: other.orgId }).update(theirs);
  dns.set({
    [record]: null,
    [`theirs._domainkey.${name}`]: { TXT: [`v=DKIM1; k=rsa; p=${dkimKey.publicKey}`] },
  });
  await other.call('POST', `/api/public/domains/${name}/verify`);
  t.like(await stateOf(other), { status: 'verified', failures: 0 });
  t.true(Number((await stateOf(world)).check_at) <= clock.now());
  await clock.passUntil(async () => (await stateOf(world)).failures === 1, { step: '10s' });
  t.is((await stateOf(world)).status, 'verified', 'one missing record may be a mistake');
  await clock.jump('6h');
  await clock.passUntil(async () => (await stateOf(world)).status === 'pending', { step: '10s' });
  t.is((await world.send({ to: 'ann@there.invalid' })).body.error, 'DOMAIN_NOT_VERIFIED');
  t.is((await other.send({ to: 'ann@there.invalid' })).status, 200);
  t.deepEqual((await eventsOf(world)).at(-1), `domain.unverified ${name}`);
});

test('a DNS that gives no answer changes nothing', async (t) => {
  const world = await startWorld(t);
  await nextChecked(world);
  world.dns.set({ [record]: 'SERVFAIL' });
  const dueAt = async () => Number((await world.db('domains').first('check_at')).check_at);
  for (let n = 0; n < 3; n++) {
    const before = await dueAt();
    await world.clock.jump(Math.max(before - world.clock.now(), 0));
    await world.clock.passUntil(async () => (await dueAt()) !== before, { step: '10s' });
  }
  t.like(await domainOf(world), { status: 'verified', failingSince: null });
  t.deepEqual(await eventsOf(world), []);
});

for (const policy of ['keep', 'refuse'])
  test(`${policy}: a check that a person asks for reports a missing record, and takes nothing away`, async (t) => {
    const world = await startWorld(t, { settings: { POSTERN_UNVERIFIED_DOMAINS: policy } });
    await nextChecked(world);
    const due = async () => (await world.db('domains').where({ name }).first('check_at')).check_at;
    const before = await due();
    world.dns.set({ [record]: { TXT: [] } });
    const verify = async () => {
      const { domain, records } = (await world.call('POST', `/api/public/domains/${name}/verify`)).body;
      return [domain.status, records.find(({ purpose }: { purpose: string }) => purpose === 'dkim').ok];
    };
    for (let n = 0; n < 3; n++) t.deepEqual(await verify(), ['verified', false]);
    t.is(await due(), before, 'asking does not put off the watch');
    t.is((await domainOf(world)).failingSince, null);
    t.is((await world.send({ to: 'ann@there.invalid' })).status, 200);
    t.deepEqual(await eventsOf(world), []);

    await nextChecked(world);
    t.deepEqual(await verify(), ['verified', false], 'one failure of the watch is none of two');
    t.is((await nextChecked(world)).status, policy === 'refuse' ? 'pending' : 'verified');
    t.deepEqual(await eventsOf(world), [`domain.unverified ${name}`]);
    world.dns.set({ [record]: { TXT: [`v=DKIM1; p=${dkimKey.publicKey}`] } });
    t.deepEqual(await verify(), ['verified', true]);
    t.deepEqual(await verify(), ['verified', true]);
    t.deepEqual(await eventsOf(world), [`domain.unverified ${name}`, `domain.verified ${name}`]);
  });

test('two nodes report a change once', async (t) => {
  const world = await startWorld(t, { database: 'postgres', settings: sharedSecret });
  await startNode(t, world);
  await nextChecked(world);
  world.dns.set({ [record]: { TXT: ['v=DKIM1; p=AAAA'] } });
  await nextChecked(world);
  t.is((await world.db('domains').first('failures')).failures, 1);
  await nextChecked(world);
  t.deepEqual(await eventsOf(world), [`domain.unverified ${name}`]);
});

test('a pending domain is checked after 1, 2, 5, 15 and 60 minutes, then hourly for three days', (t) => {
  const state = {
    status: 'pending',
    createdAt: 0,
    failures: 0,
    failingSince: null,
    returnPath: 'none',
  } as const;
  const times: number[] = [];
  for (let now: number | null = 0; now !== null; now = nextCheck(state, now, () => 0.5))
    times.push(now / minute);
  t.deepEqual(times.slice(0, 8), [0, 1, 2, 5, 15, 60, 120, 180]);
  t.is(times.at(-1), 72 * 60);
  const verified = { ...state, status: 'verified' } as const;
  t.is(
    nextCheck(verified, 0, () => 1),
    6 * hour,
  );
  t.is(
    nextCheck({ ...verified, failures: 1 }, 0, () => 1),
    6 * hour,
  );
  t.is(
    nextCheck({ ...verified, failures: 2 }, 0, () => 1),
    hour,
    'its end is found sooner',
  );
  t.is(
    nextCheck({ ...verified, returnPath: 'used' }, 0, () => 1),
    hour,
  );
});

for (const kind of journeyKinds) {
  test(`${kind}: the domains of one organization are not checked before those of all others`, async (t) => {
    const { db } = await openMigrated(t, kind);
    const orgs = await Promise.all(['many', 'one'].map((label) => insertOrganization(db, label, 0)));
    const dkim = { dkimSelector: 's', dkimPublicKey: 'p', dkimPrivateKey: 'k' };
    const add = (orgId: string, index: number, at: number) =>
      insertDomain(db, { orgId, name: `d${index}.invalid`, ...dkim }, at);
    for (let index = 0; index < 30; index++) await add(orgs[0]!, index, 1);
    await add(orgs[1]!, 99, 2);
    const claim = () => claimDueDomains(db, { now: hour, until: 2 * hour, limit: 20 });
    const [first, second, third] = [await claim(), await claim(), await claim()];
    t.deepEqual([first.length, second.length, third.length], [20, 11, 0]);
    t.is(first[1]!.name, 'd99.invalid');
  });
}
