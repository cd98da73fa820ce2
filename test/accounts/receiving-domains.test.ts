/** A domain that receives: its MX record is offered, looked up and judged; of several organizations, one receives its mail. */
import test, { type ExecutionContext } from 'ava';
import { makeKey } from '#accounts/create-key.ts';
import { makeOrganization } from '#accounts/create-organization.ts';
import { findDomain } from '#accounts/rows/domains-table.ts';
import { findOrganization } from '#accounts/rows/organizations.ts';
import { findReceivingDomain } from '#accounts/rows/receiving-domains.ts';
import { journeyKinds } from '#lab/database/databases.ts';
import { dkimKey } from '#lab/dkim.ts';
import { freePort } from '#lab/load/ports.ts';
import { startWorld, type World, type WorldOptions } from '#lab/scenes/world.ts';
import { sumNames } from '#mail/record/counts.ts';
import { readOwnerNeeds } from '#operate/status/owner-needs.ts';

const name = 'sender.invalid';

async function start(t: ExecutionContext, { settings, ...options }: WorldOptions = {}) {
  const port = String(await freePort('127.0.0.1'));
  return startWorld(t, { ...options, settings: { POSTERN_INBOUND_PORT: port, ...settings } });
}

/** Another organization that has the domain too. */
async function rival(world: World) {
  const { db, clock } = world;
  const { id } = await makeOrganization(db, { name: 'Rival' }, clock.now());
  await db('organizations').where({ id }).update({ requests_per_second: null });
  const { key } = await makeKey(db, { orgId: id, label: 'rival', scopes: ['full_access'] }, clock.now());
  const headers = { authorization: `Bearer ${key}` };
  const call = (method: string, path: string, body?: object) =>
    world.call(method, `/api/public${path}`, { headers, ...(body && { body: JSON.stringify(body) }) });
  const { body } = await call('POST', '/domains', { name });
  const [dkim] = body.records;
  const publish = () => world.dns.set({ [dkim.name]: { TXT: [dkim.value] } });
  return { id, call, publish };
}

const receive = (world: World, receives: boolean) =>
  world.call('PATCH', `/api/public/domains/${name}`, { body: JSON.stringify({ receives }) });

for (const kind of journeyKinds) {
  test(`${kind}: the first organization that receives a domain's mail keeps it until it stops`, async (t) => {
    const world = await start(t, { database: kind });
    const other = await rival(world);
    const receiver = async () => (await findReceivingDomain(world.db, name))?.orgId ?? null;
    t.is(await receiver(), null);
    // Pending: a wish that holds nothing up and tells nothing.
    t.is((await other.call('PATCH', `/domains/${name}`, { receives: true })).body.domain.receives, true);
    t.is(await receiver(), null);
    t.is((await receive(world, true)).body.domain.receives, true);
    t.is(await receiver(), world.orgId);

    other.publish();
    const verified = await other.call('POST', `/domains/${name}/verify`);
    t.like(verified.body.domain, { status: 'verified', receives: false });
    const { status, body } = await other.call('PATCH', `/domains/${name}`, {
      receives: true,
      tls: 'verified',
    });
    t.is(status, 400);
    t.regex(body.message, /Another organization of this server receives the mail for sender\.invalid/);
    t.is((await findDomain(world.db, other.id, name))!.tls, 'opportunistic', 'nothing is half done');
    t.is(await receiver(), world.orgId);

    await receive(world, false);
    t.is((await other.call('PATCH', `/domains/${name}`, { receives: true })).status, 200);
    t.is(await receiver(), other.id);
    t.is((await receive(world, true)).status, 400);
    await other.call('DELETE', `/domains/${name}`);
    t.is(await receiver(), null);
  });

  test(`${kind}: two that begin at the same moment: the database lets one`, async (t) => {
    const world = await start(t, { database: kind });
    const other = await rival(world);
    other.publish();
    await other.call('POST', `/domains/${name}/verify`);
    const both = await Promise.all([
      receive(world, true),
      other.call('PATCH', `/domains/${name}`, { receives: true }),
    ]);
    t.is(both.filter(({ status }) => status === 200).length, 1);
    const receiving = await world.db('domains').where({ name, receives: true, status: 'verified' });
    t.is(receiving.length, 1);
  });
}

test('the MX record is offered, and judged by where mail goes first', async (t) => {
  const world = await start(t);
  const recordIn = (records: { purpose: string }[]) => records.find(({ purpose }) => purpose === 'receiving');
  const { records: before } = (await world.call('GET', `/api/public/domains/${name}`)).body;
  t.is(recordIn(before), undefined);
  const { records } = (await receive(world, true)).body;
  const host = world.config.hostname;
  t.like(recordIn(records), { type: 'MX', name, value: `10 ${host}`, required: false });
  const missingSince = async () => (await findDomain(world.db, world.orgId, name))!.mxMissingSince;
  const cases: [{ MX: string[] } | null, boolean, RegExp | null][] = [
    [null, false, null],
    [{ MX: [`10 ${host.toUpperCase()}.`] }, true, null],
    [{ MX: [`20 ${host}`, '10 mail.elsewhere.invalid'] }, false, /goes to mail\.elsewhere\.invalid\. Point/],
    [
      { MX: [`10 ${host}`, '20 mail.elsewhere.invalid'] },
      true,
      /Some mail .* may go to mail\.elsewhere\.invalid/,
    ],
    [{ MX: ['0 .'] }, false, /goes to \./],
  ];
  for (const [dns, ok, problem] of cases) {
    world.dns.set({ [name]: dns });
    const { body } = await world.call('POST', `/api/public/domains/${name}/verify`);
    const seen = recordIn(body.records) as unknown as { ok: boolean; problem: string | null };
    t.is(seen.ok, ok, JSON.stringify(dns));
    t.is((await missingSince()) === null, ok);
    if (problem === null) t.is(seen.problem, null);
    else t.regex(seen.problem!, problem);
    t.is(body.domain.status, 'verified');
  }
});

test('a domain that loses its verification keeps its mail waiting, until another organization is verified', async (t) => {
  const world = await start(t, { settings: { POSTERN_UNVERIFIED_DOMAINS: 'refuse' } });
  const { db, clock, dns } = world;
  await receive(world, true);
  const statusOf = async () => (await findDomain(db, world.orgId, name))!.status;
  dns.set({ [`${dkimKey.selector}._domainkey.${name}`]: null });
  await clock.passUntil(async () => (await statusOf()) === 'pending', { step: '1h' });
  t.like(await findReceivingDomain(db, name), { orgId: world.orgId, status: 'pending' });

  const other = await rival(world);
  other.publish();
  await other.call('POST', `/domains/${name}/verify`);
  t.is((await other.call('PATCH', `/domains/${name}`, { receives: true })).status, 200);
  t.like(await findReceivingDomain(db, name), { orgId: other.id, status: 'verified' });
  dns.set({ [`${dkimKey.selector}._domainkey.${name}`]: { TXT: [`v=DKIM1; p=${dkimKey.publicKey}`] } });
  const again = await world.call('POST', `/api/public/domains/${name}/verify`);
  t.like(again.body.domain, { status: 'verified', receives: false });
});

test('a server without an inbound port, or a name of the server, receives nothing', async (t) => {
  const world = await startWorld(t);
  t.regex((await receive(world, true)).body.message, /sets POSTERN_INBOUND_PORT/);
  const { hostname } = world.config;
  const open = await start(t);
  await open.call('POST', '/api/public/domains', { body: JSON.stringify({ name: hostname }) });
  const refused = await open.call('PATCH', `/api/public/domains/${hostname}`, { body: '{"receives":true}' });
  t.regex(refused.body.message, /is a name of this server/);
});

test('an MX record that goes away is found by the watch, and its owners are told', async (t) => {
  const world = await start(t);
  const { db, clock, dns, config } = world;
  dns.set({ [name]: { MX: [`10 ${config.hostname}`] } });
  await receive(world, true);
  const since = async () => (await findDomain(db, world.orgId, name))!.mxMissingSince;
  const checked = () => clock.passUntil(async () => (await since()) !== null, { step: '1h' });
  dns.set({ [name]: { MX: ['10 mail.elsewhere.invalid'] } });
  await checked();
  const org = (await findOrganization(db, world.orgId))!;
  const none = Object.fromEntries(sumNames.map((column) => [column, 0])) as never;
  const needs = async (now: number) =>
    (await readOwnerNeeds({ db, org, counts: none, lowShare: 0, storeBytes: 2 ** 30, now })).filter(
      ({ cause }) => cause === 'mx_missing',
    );
  const now = clock.now();
  t.like((await needs(now))[0], { subject: name, severity: 'watch' });
  t.like((await needs(now + 25 * 3_600_000))[0], { subject: name, severity: 'act' });
  dns.set({ [name]: 'SERVFAIL' });
  await clock.advance('7h');
  t.not(await since(), null, 'no answer says nothing');
  dns.set({ [name]: { MX: [`10 ${config.hostname}`] } });
  await clock.passUntil(async () => (await since()) === null, { step: '1h' });
  t.deepEqual(await needs(clock.now()), []);
});
