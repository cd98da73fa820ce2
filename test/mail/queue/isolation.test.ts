/** One slow or dead destination, whatever its backlog, never delays another; tenants share one fairly. */
import test from 'ava';
import { newKey } from '#accounts/api-keys.ts';
import { setQuota } from '#accounts/rows/credit-ledger.ts';
import { insertKey } from '#accounts/rows/keys.ts';
import { insertOrganization } from '#accounts/rows/organizations.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

const zone = { 'slow.invalid': { MX: ['10 mx1.invalid'] }, 'quick.invalid': { MX: ['10 mx2.invalid'] } };

/** Many sends, a few at a time, each to an address of its own. */
async function sendMany(world: World, count: number, domain: string, init: RequestInit = {}): Promise<void> {
  const one = async (n: number) => {
    const body = JSON.stringify({
      from: 'app@sender.invalid',
      to: `n${n}@${domain}`,
      subject: `${n}`,
      text: 'x',
    });
    const { status } = await world.call('POST', '/api/public/email/send', { body, ...init });
    if (status !== 200) throw new Error(`send ${n}: ${status}`);
  };
  for (let start = 0; start < count; start += 20) {
    await Promise.all(Array.from({ length: Math.min(20, count - start) }, (_, n) => one(start + n)));
  }
}

const leased = async (world: World) => (await world.db('deliveries').where({ status: 'sending' })).length;

test('a backlog for a destination that never answers delays nobody, and is not held in memory', async (t) => {
  const world = await startWorld(t, {
    exchangers: [{ script: { greeting: () => 'hang' } }, {}],
    zone,
    settings: { POSTERN_MTA_CONCURRENCY: '10', POSTERN_MTA_PER_DESTINATION: '4' },
  });
  await sendMany(world, 120, 'slow.invalid');
  // Twice the connections, and the few that were taken before its route was known.
  t.true((await leased(world)) <= 12);
  const { body } = await world.send({ to: 'ann@quick.invalid' });
  await world.mx[1]!.received(1);
  await world.when(body.emailId, ({ status }) => status === 'delivered');
  t.is(world.mx[0]!.maxConnections, 4);
  await world.mx[0]!.close();
});

test(`one tenant's backlog does not hold back another's one mail to the same destination`, async (t) => {
  const gate = Promise.withResolvers<void>();
  const world = await startWorld(t, {
    exchangers: [{ script: { dot: () => gate.promise.then(() => undefined) } }],
    settings: { POSTERN_MTA_PER_DESTINATION: '2' },
  });
  await sendMany(world, 60, 'there.invalid');
  const key = await anotherTenant(world);
  const body = JSON.stringify({
    from: 'app@sender.invalid',
    to: 'ann@there.invalid',
    subject: 'one',
    text: 'x',
  });
  await world.call('POST', '/api/public/email/send', { body, headers: { authorization: `Bearer ${key}` } });
  gate.resolve();
  const messages = await world.mx[0]!.received(61);
  const place = messages.findIndex(({ to }) => to[0] === 'ann@there.invalid');
  t.true(place <= 8, `it came as number ${place + 1} of 61`);
});

test('a server that stops releases the mail that it has not tried', async (t) => {
  const world = await startWorld(t, {
    exchangers: [{ script: { greeting: () => 'hang' } }],
    settings: { POSTERN_MTA_PER_DESTINATION: '2' },
  });
  await sendMany(world, 10, 'there.invalid');
  await until(() => world.mx[0]!.connections === 2, { what: 'both connections' });
  const stopped = world.stop();
  const leased = () => world.db('deliveries').whereNotNull('lease_owner');
  await until(async () => (await leased()).length <= 2, { what: 'the rest to be given back' });
  await world.mx[0]!.close();
  await stopped;
  const rows = await world.db('deliveries');
  t.deepEqual(
    rows.filter(({ lease_owner }) => lease_owner !== null),
    [],
  );
  t.true(rows.filter(({ attempts }) => attempts > 0).length <= 2, 'only what was in the air counts as tried');
});

async function anotherTenant(world: World): Promise<string> {
  const now = world.clock.now();
  const { key, hash, hint } = newKey();
  await world.db.transaction(async (trx) => {
    const orgId = await insertOrganization(trx, 'Another', now);
    await setQuota(trx, orgId, null, now);
    await insertKey(trx, { orgId, label: 'test', hash, hint, scopes: ['full_access'] }, now);
    const domain = await trx('domains').first();
    await trx('domains').insert({ ...domain, id: crypto.randomUUID(), org_id: orgId });
  });
  return key;
}
