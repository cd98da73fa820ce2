/** Pools of source addresses in the database: who is pinned, which nodes have what, and what waits for none. */
import test from 'ava';
import { findOrganization } from '#accounts/rows/organizations.ts';
import { oneKind } from '#lab/database/databases.ts';
import { minute, now, openQueue } from '#lab/database/queue-rows.ts';
import { createPoolAssignment, poolsOf } from '#mail/queue/cluster/pool-assignment.ts';
import {
  assignPool,
  countAssigned,
  poolOf,
  publishPools,
  readAssigned,
  readMissing,
  readPools,
  withdrawPools,
} from '#mail/queue/rows/ip-pools.ts';
import { claimExpired } from '#mail/queue/rows/lease-statements.ts';
import { conditionText } from '#operate/condition/condition-words.ts';
import { readSummary } from '#operate/explain/queue-rows-by-destination.ts';

test('organizations are pinned and unpinned', async (t) => {
  const { db, orgId, newOrg } = await openQueue(t, oneKind);
  const other = await newOrg();
  t.deepEqual((await readAssigned(db, 'one', now)).pools, new Map());
  await assignPool(db, orgId, 'bulk');
  t.deepEqual((await readAssigned(db, 'one', now)).pools, new Map([[orgId, 'bulk']]));
  t.deepEqual(Object.fromEntries(await countAssigned(db)), { bulk: 1, default: 1 });
  t.is((await findOrganization(db, orgId))?.pool, 'bulk');
  t.deepEqual([await poolOf(db, orgId), await poolOf(db, other)], ['bulk', 'default']);
  await assignPool(db, orgId, 'default');
  t.is((await findOrganization(db, orgId))?.pool, null);
  t.deepEqual((await readAssigned(db, 'one', now)).pools, new Map());
});

test('a node has the pools that it named last, for a minute', async (t) => {
  // On SQLite there is one node, which names its pools when it starts.
  const { db } = await openQueue(t, 'postgres');
  await publishPools(db, 'one', ['default', 'bulk'], now);
  await publishPools(db, 'two', ['transactional', 'bulk'], now);
  t.deepEqual([...(await readPools(db, now))].sort(), ['bulk', 'default', 'transactional']);
  t.deepEqual([...(await readAssigned(db, 'one', now)).elsewhere].sort(), ['bulk', 'transactional']);
  await publishPools(db, 'one', ['default'], now + minute);
  t.deepEqual([...(await readPools(db, now + minute + 1))], ['default']);
  await withdrawPools(db, 'one');
  t.deepEqual([...(await readPools(db, now + minute + 1))], []);
});

test('mail that is too old is left to the nodes of its pool', async (t) => {
  const { db, orgId, newOrg, add } = await openQueue(t, oneKind);
  const other = await newOrg();
  await assignPool(db, orgId, 'bulk');
  const old = { expires_at: now - 1, due_at: now };
  const [pinned, free] = [await add(old), await add({ ...old, org_id: other })];
  const claim = async (elsewhere: string[]) => {
    const claimed = await claimExpired(db, 10, { node: 'one', now, leaseMs: 1000 }, elsewhere);
    return claimed.map(({ emailId }) => emailId);
  };
  t.deepEqual(await claim(['bulk', 'default']), []);
  t.deepEqual(await claim(['bulk']), [free.emailId]);
  t.deepEqual(await claim(['transactional', 'default']), [pinned.emailId]);
});

test('the summary says what waits for a pool that no node has', async (t) => {
  const { db, orgId, newOrg, add } = await openQueue(t, oneKind);
  const other = await newOrg();
  await assignPool(db, orgId, 'bulk');
  await add({ recipient: 'ann@both.invalid' }, { recipient: 'ann@one.invalid' });
  await add({ recipient: 'ben@both.invalid', org_id: other });
  const said = async () => {
    const lines = await readSummary(db, { now });
    return Object.fromEntries(lines.map((line) => [line.destination, conditionText(line.condition, String)]));
  };
  t.deepEqual(await readMissing(db, now), [], 'no node runs: mail waits for that');
  t.deepEqual(await said(), { 'both.invalid': 'ok', 'one.invalid': 'ok' });
  await publishPools(db, 'one', ['default'], now);
  t.deepEqual(await readMissing(db, now), ['bulk']);
  t.deepEqual(await said(), {
    'both.invalid': '1 of them waits for the IP pool bulk, which no running node has',
    'one.invalid': 'waits for the IP pool bulk, which no running node has',
  });
  await publishPools(db, 'two', ['bulk'], now);
  t.deepEqual(await said(), { 'both.invalid': 'ok', 'one.invalid': 'ok' });
});

test('a node knows its own pools, who is pinned, and tells what it has now and then', async (t) => {
  t.deepEqual(poolsOf([]), ['default']);
  let pins = new Map([['acme', 'bulk']]);
  let paused = new Set<string>();
  const published: [string[], number][] = [];
  const pinning = createPoolAssignment({
    sources: [{ pool: 'bulk' }, { pool: 'transactional' }, { pool: 'bulk' }],
    read: async () => ({ pools: pins, paused, elsewhere: new Set(['default', 'bulk']) }),
    publish: async (pools, at) => void published.push([pools, at]),
    publishIntervalMs: 20_000,
  });
  t.true(await pinning.refresh(0));
  t.false(await pinning.refresh(1000));
  t.deepEqual([pinning.poolOf('acme'), pinning.poolOf('other')], ['bulk', 'default']);
  t.deepEqual([pinning.isOurs('acme'), pinning.isOurs('other')], [true, false]);
  t.deepEqual(pinning.otherPools(), ['default']);
  pins = new Map([['other', 'transactional']]);
  t.true(await pinning.refresh(20_000));
  t.deepEqual([pinning.isOurs('acme'), pinning.isOurs('other')], [false, true]);
  paused = new Set(['other']);
  t.true(await pinning.refresh(21_000));
  t.deepEqual([pinning.isOurs('other'), pinning.isPaused('other'), pinning.anyPaused()], [false, true, true]);
  paused = new Set();
  t.true(await pinning.refresh(22_000));
  t.true(pinning.isOurs('other'));
  const own = ['bulk', 'transactional'];
  t.deepEqual(published, [
    [own, 0],
    [own, 20_000],
  ]);
});
