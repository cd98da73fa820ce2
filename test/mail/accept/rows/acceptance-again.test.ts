/** A send whose commit is asked for again, because the answer to the first was lost: taken once, and gone on with. */
import test, { type ExecutionContext } from 'ava';
import { setQuota } from '#accounts/rows/credit-ledger.ts';
import { type DatabaseKind, kinds } from '#lab/database/databases.ts';
import { minute, now, openQueue } from '#lab/database/queue-rows.ts';
import { leaseMs, sendOf } from '#lab/sends.ts';
import { acceptAll } from '#mail/accept/rows/acceptance.ts';
import { forgetAnswers } from '#mail/accept/rows/idempotency.ts';
import { freeOrphans } from '#mail/queue/rows/lease-statements.ts';
import type { Send } from '#platform/database/tables/send-record.ts';

const policy = { keepMs: 60 * minute, lowShare: 0.1 };

async function ready(t: ExecutionContext, kind: DatabaseKind) {
  const { db, orgId } = await openQueue(t, kind);
  await db.transaction((trx) => setQuota(trx, orgId, 100, now));
  const accept = async (send: Send) => (await acceptAll(db, [send], policy))[0]!;
  const read = async () => ({
    rows: await db('deliveries').select('status', 'lease_owner', 'due_at'),
    used: await db('organizations').where({ id: orgId }).first('quota_used'),
  });
  return { db, accept, read, send: sendOf(orgId) };
}

const againUntil = now + minute + leaseMs;
const leased = (until: number) => ({ status: 'sending', lease_owner: 'node', due_at: until });

for (const kind of kinds) {
  test(`${kind}: taken the first time; the same answer, nothing charged, and its lease begins anew`, async (t) => {
    const { db, accept, read, send } = await ready(t, kind);
    const first = await accept(send);
    // What the duplicate window goes by is forgotten within seconds.
    await forgetAnswers(db, now + minute, policy.keepMs);
    t.deepEqual(await accept({ ...send, retryLeaseUntil: againUntil }), first);
    t.deepEqual(await read(), { rows: [leased(againUntil)], used: { quota_used: 1 } });
  });

  test(`${kind}: freed meanwhile; whoever claims it sends it, and not who asks`, async (t) => {
    const { db, accept, read, send } = await ready(t, kind);
    const first = await accept(send);
    await freeOrphans(db, 'node', now + 2 * minute, now + leaseMs);
    t.deepEqual(await accept({ ...send, retryLeaseUntil: againUntil }), { ...first, replayed: true });
    const rows = [{ status: 'queued', lease_owner: null, due_at: now + 2 * minute }];
    t.deepEqual(await read(), { rows, used: { quota_used: 1 } });
  });

  test(`${kind}: not taken the first time; it is taken now`, async (t) => {
    const { accept, read, send } = await ready(t, kind);
    const decision = await accept({ ...send, retryLeaseUntil: againUntil });
    t.like(decision, { replayed: false, answer: { accepted: ['bob@there.invalid'] } });
    t.deepEqual(await read(), { rows: [leased(now + leaseMs)], used: { quota_used: 1 } });
  });
}
