/** Leases: renewed while they are held, good for nothing once they have run out, and whose outcomes count. */
import test from 'ava';
import { manualClock } from '#lab/clock.ts';
import { kinds, oneKind } from '#lab/database/databases.ts';
import { minute, now, openQueue } from '#lab/database/queue-rows.ts';
import { attemptOf } from '#lab/sends.ts';
import { transition } from '#mail/deliver/transition.ts';
import { HeldLeases } from '#mail/queue/held-leases.ts';
import {
  claimBacklogs,
  freeOrphans,
  releaseLeases,
  renewLeases,
  takeBack,
} from '#mail/queue/rows/lease-statements.ts';
import { recordAll } from '#mail/queue/rows/outcomes.ts';
import type { Delivery } from '#platform/values/glossary.ts';

const leaseMs = 3 * minute;
const lane = { domain: 'there.invalid', limit: 5 };

/** Leases by hand: `ours` says what a renewal finds, null that the database is away. */
function byHand() {
  const clock = manualClock();
  const seen = {
    renewed: [] as string[][],
    takenOver: 0,
    freed: 0,
    troubles: 0,
    ours: new Set<string>() as Set<string> | null,
  };
  const leases = new HeldLeases({
    store: {
      async renewLeases(ids) {
        seen.renewed.push(ids);
        if (!seen.ours) throw new Error('away');
        return seen.ours;
      },
      async freeOrphans() {
        seen.freed += 1;
      },
      releaseLeases: async () => {},
    },
    onReleased() {},
    async takeOver() {
      seen.takenOver += 1;
    },
    onError() {
      seen.troubles += 1;
    },
    leaseMs,
    clock,
    stopped: new AbortController().signal,
  });
  leases.start();
  return { clock, leases, seen };
}

const named = (id: string) => ({ id }) as Delivery;

test('a lease is renewed while it is held, and not longer', async (t) => {
  const { clock, leases, seen } = byHand();
  const delivery = named('a');
  seen.ours = new Set(['a']);
  leases.begin(delivery);
  await clock.advance(10 * leaseMs);
  t.true(leases.isGood(delivery));
  t.true(seen.renewed.length >= 20, 'several times in a lease');
  leases.end(delivery);
  const before = seen.renewed.length;
  await clock.advance(leaseMs);
  t.is(seen.renewed.length, before);
});

test('no attempt starts on a lease that could not be renewed or that another node has', async (t) => {
  const { clock, leases, seen } = byHand();
  const [kept, lost] = [named('kept'), named('lost')];
  leases.begin(kept);
  leases.begin(lost);
  seen.ours = new Set(['kept']);
  await clock.advance(leaseMs / 2);
  t.deepEqual([leases.isGood(kept), leases.isGood(lost)], [true, false]);
  seen.ours = null;
  await clock.advance(leaseMs);
  t.false(leases.isGood(kept), 'the database has been away for too long');
  seen.ours = new Set(['kept']);
  await clock.advance(leaseMs / 6);
  t.true(leases.isGood(kept), 'nobody has taken it over meanwhile');
});

test('a lease that has ended does not count for a new one of the same delivery', (t) => {
  const { leases } = byHand();
  const [before, after] = [named('a'), named('a')];
  leases.begin(before);
  leases.begin(after);
  leases.end(before);
  t.deepEqual([leases.isGood(before), leases.isGood(after)], [false, true]);
});

test('leases of other nodes are taken over by a node that has reached the database for a while', async (t) => {
  const { clock, leases, seen } = byHand();
  const delivery = named('a');
  seen.ours = new Set(['a']);
  leases.begin(delivery);
  await clock.advance(leaseMs);
  t.true(seen.takenOver > 0);
  seen.ours = null;
  await clock.advance(leaseMs);
  t.true(seen.troubles > 1, 'it is tried again');
  const before = seen.takenOver;
  seen.ours = new Set(['a']);
  await clock.advance(leaseMs / 6);
  t.is(seen.takenOver, before, 'the others are given the time to renew theirs first');
  await clock.advance(leaseMs / 2);
  t.true(seen.takenOver > before);
});

// Found by the simulation: two copies after a leap of the clock while a mail was accepted on a slow disk.
test('no lease is taken for an orphan when the clock has leapt, because its commit may be under way', async (t) => {
  const { clock, seen } = byHand();
  await clock.advance(leaseMs / 6);
  t.is(seen.freed, 1);
  await clock.jump(20 * minute);
  t.is(seen.freed, 1, 'it has not been renewed by then');
  await clock.advance(leaseMs / 6);
  t.is(seen.freed, 2);
});

const attemptAt = (at: number, outcome: 'delivered' | 'deferred', diagnostic: string) =>
  attemptOf({ outcome, diagnostic, category: 'connection', fault: 'infrastructure' }, at);

const claimBy = async ({ db, orgId }: Awaited<ReturnType<typeof openQueue>>, node: string, at: number) => {
  const [delivery] = await claimBacklogs(db, [{ ...lane, orgId }], { node, now: at, leaseMs });
  return delivery!;
};

test('a node that lost its lease records nothing over its successor', async (t) => {
  const queue = await openQueue(t, oneKind);
  const { db, add, read } = queue;
  const { ids } = await add({ due_at: now });
  const first = await claimBy(queue, 'first', now);
  const later = now + leaseMs;
  t.deepEqual(await takeBack(db, 'second', later - 1, leaseMs, 'expired'), []);
  const [second] = await takeBack(db, 'second', later, leaseMs, 'expired');
  t.is(second!.id, first.id);
  const late = transition(first, attemptAt(later, 'delivered', 'late'), null);
  t.deepEqual(await recordAll(db, 'first', [late], []), [false]);
  const own = transition(second!, attemptAt(later, 'deferred', 'own'), later);
  t.deepEqual(await recordAll(db, 'second', [own], []), [true]);
  t.like(await read(ids[0]!), { status: 'deferred', attempts: 2, lease_owner: null });
});

for (const kind of kinds) {
  test(`${kind}: a lost lease costs no outcome but its own, whatever they share`, async (t) => {
    const queue = await openQueue(t, kind);
    const { db, add, orgId, read } = queue;
    await add({ due_at: now }, { due_at: now }, { due_at: now }, { due_at: now }, { due_at: now });
    const claimed = await claimBacklogs(db, [{ ...lane, orgId }], { node: 'first', now, leaseMs });
    const [one, two, three, lost, five] = claimed.map((delivery) =>
      transition(delivery, attemptAt(now, 'delivered', 'taken'), null),
    );
    await db('deliveries').where({ id: lost!.delivery.id }).update({ lease_owner: 'second' });
    // The first is recorded at once, by itself. The others wait for it, and share a commit.
    const recorded = await Promise.all([
      recordAll(db, 'first', [one!], []),
      recordAll(db, 'first', [two!], []),
      recordAll(db, 'first', [three!, lost!], []),
      recordAll(db, 'first', [five!], []),
    ]);
    t.deepEqual(recorded.flat(), [true, true, true, false, true]);
    t.like(await read(lost!.delivery.id), { status: 'sending', lease_owner: 'second' });
    t.is((await db('attempts')).length, 4);
    t.is((await db('events').where({ type: 'email.delivered' })).length, 4);
    t.is((await db('deliveries').where({ status: 'delivered' })).length, 4);
  });
}

test('a node records nothing under a lease that it has replaced by a newer one of its own', async (t) => {
  const queue = await openQueue(t, oneKind);
  const { db, add, read } = queue;
  const { ids } = await add({ due_at: now });
  const old = await claimBy(queue, 'first', now);
  const [taken] = await takeBack(db, 'second', now + leaseMs, leaseMs, 'expired');
  const cut = transition(taken!, attemptAt(now + leaseMs, 'deferred', 'cut short'), now + leaseMs);
  await recordAll(db, 'second', [cut], []);
  const fresh = await claimBy(queue, 'first', now + leaseMs);
  t.is(fresh.attempts, old.attempts + 1);

  const stale = transition(old, attemptAt(now + 1, 'delivered', 'stale'), null);
  t.deepEqual(await recordAll(db, 'first', [stale], []), [false]);
  await releaseLeases(db, 'first', [old]);
  t.like(await read(ids[0]!), { status: 'sending', attempts: 2, lease_owner: 'first' });
  const attempts = await db('attempts').orderBy('number').pluck('number');
  t.deepEqual(attempts, [2]);
});

test('an outcome that was committed without an answer is known when it is tried again', async (t) => {
  const queue = await openQueue(t, oneKind);
  const { db, add } = queue;
  await add({ due_at: now });
  const delivery = await claimBy(queue, 'node', now);
  const move = transition(delivery, attemptAt(now, 'delivered', 'taken'), null);
  t.deepEqual(await recordAll(db, 'node', [move], []), [true]);
  t.deepEqual(await recordAll(db, 'node', [move], []), [true]);
  t.is((await db('attempts')).length, 1);
  t.is((await db('events').where({ type: 'email.delivered' })).length, 1);
});

test(`a renewal extends the leases that it names, as far as they are still the node's`, async (t) => {
  const { db, add, read } = await openQueue(t, oneKind);
  const leased = { status: 'sending', due_at: now };
  const { ids } = await add(
    { ...leased, lease_owner: 'node' },
    { ...leased, lease_owner: 'node' },
    { ...leased, lease_owner: 'other' },
  );
  const [held, orphan, others] = ids as [string, string, string];
  t.deepEqual(await renewLeases(db, 'node', [held, others], now + leaseMs), new Set([held]));
  await freeOrphans(db, 'node', now, now + leaseMs / 2);
  t.like(await read(held), { status: 'sending', due_at: now + leaseMs, lease_owner: 'node' });
  t.like(await read(orphan), { status: 'deferred', due_at: now, lease_owner: null, attempts: 1 });
  t.like(await read(others), { status: 'sending', due_at: now, lease_owner: 'other' });
});
