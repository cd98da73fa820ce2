/**
 * Records outcomes: the delivery's new state, the attempt with its transcript, the event and, after some bounces, the
 * suppression of the address; many in one transaction. The end of mail that was not tried is no attempt. A delivery whose
 * lease this node has lost is skipped, because its new owner records it. So is one that was attempted since, because the
 * node may have lost the lease and got it again: the number of attempts, which every outcome increases, is the fencing token.
 *
 * On SQLite, outcomes that suppress no address are one statement, which fails as a whole if a lease was lost; then, and
 * on PostgreSQL, they are recorded step by step.
 *
 * A commit whose answer was lost is tried again, and recognises by its attempt rows, or by the final state of mail that was
 * not tried, what it had already written.
 */

import { replyIn } from '#accounts/rows/bounce-reply.ts';
import { noteSoftBounces, type SoftBounce } from '#accounts/rows/soft-bounces.ts';
import { type NewSuppression, suppress } from '#accounts/rows/suppressions.ts';
import {
  softMailboxCategory,
  suppressionReason,
  type Transition,
  wasTried,
} from '#mail/deliver/transition.ts';
import { failpoint } from '#platform/base/failpoints.ts';
import { newId } from '#platform/base/id.ts';
import { insertRows } from '#platform/database/engine/insert-rows.ts';
import { type JsonColumns, jsonItems, query } from '#platform/database/engine/json-rows.ts';
import { type Db, isPostgres, type Trx } from '#platform/database/engine/open.ts';
import { inSharedCommit } from '#platform/database/engine/shared-commit.ts';
import { requireChanged, type Write, writeTogether } from '#platform/database/engine/write-together.ts';
import { bumpUpdatedAt } from '#platform/database/tables/bump-updated-at.ts';
import { eventRow } from '#platform/database/tables/event-row.ts';
import { emptyServerMessages } from '#platform/database/tables/messages.ts';
import { packAttempt, packResult } from '#platform/database/tables/packed-records.ts';
import { compareKey } from '#platform/values/address.ts';
import { type Attempt, type Reply, serverOrgId } from '#platform/values/glossary.ts';
import { isTestMail } from '#platform/values/test-route.ts';
import { isOurs } from './lease-statements.ts';
import { countTlsSessions } from './tls-sessions.ts';

/**
 * Returns for each transition whether it is written; false: the lease was lost. `suppressAfter`: the categories of hard
 * bounces that suppress the address.
 */
export async function recordAll(
  db: Db,
  node: string,
  transitions: Transition[],
  suppressAfter: readonly string[],
): Promise<boolean[]> {
  const plan = { node, transitions, suppressAfter };
  return inSharedCommit(
    db,
    async (trx) => (await recordAtOnce(trx, plan)) ?? recordInSteps(trx, plan),
    () => recordAtOnce(db, plan),
  );
}

interface Plan {
  node: string;
  transitions: Transition[];
  suppressAfter: readonly string[];
}

const leaseLost = 'a lease was lost';

/**
 * Null if that is not possible: an address may have to be suppressed, the message of the server's own mail be emptied, or this
 * node has lost a lease; or PostgreSQL.
 */
async function recordAtOnce(db: Db, { node, transitions, suppressAfter }: Plan): Promise<boolean[] | null> {
  if (isPostgres(db)) return null;
  if (transitions.some((one) => isOfServer(one) || concernsAddress(one, suppressAfter))) return null;
  failpoint('recording');
  const { sql, values } = updateOf(db, node, transitions);
  try {
    await writeTogether(db, [
      (all) => all.raw(sql, values),
      requireChanged(transitions.length, leaseLost),
      ...writesOf(transitions),
      (all) => countTlsSessions(all, transitions.map(tlsCountOf)),
    ]);
    return transitions.map(() => true);
  } catch (error) {
    if ((error as Error).message.includes(leaseLost)) return null;
    throw error;
  }
}

async function recordInSteps(trx: Trx, { node, transitions, suppressAfter }: Plan): Promise<boolean[]> {
  const { sql, values } = updateOf(trx, node, transitions);
  const rows = await query<{ id: string }>(trx, `${sql} returning deliveries.id`, values);
  const updated = new Set(rows.map(({ id }) => id));
  failpoint('recording');
  const isFresh = ({ delivery }: Transition) => updated.has(delivery.id);
  const kept = transitions.filter(isFresh);
  const before =
    kept.length < transitions.length ? await writtenBefore(trx, transitions) : new Set<Transition>();
  const written = transitions.map((transition) => isFresh(transition) || before.has(transition));
  if (kept.length === 0) return written;
  await writeTogether(trx, writesOf(kept));
  const concerned = kept.filter((one) => concernsAddress(one, suppressAfter));
  const suppressed = concerned.flatMap((transition) => suppressionAfter(transition, suppressAfter));
  const soft = concerned.flatMap(softBounceOf);
  if (soft.length > 0) suppressed.push(...(await noteSoftBounces(trx, soft)));
  await suppress(trx, suppressed, latestOf(kept));
  await emptyServerMessages(
    trx,
    kept.map(({ delivery }) => delivery),
  );
  // Last, because other nodes count the same large domains: their rows stay locked until the commit.
  await countTlsSessions(trx, kept.map(tlsCountOf));
  return written;
}

/** Writes the new states of the deliveries that this node still has leased. */
function updateOf(db: Db, node: string, transitions: Transition[]): { sql: string; values: string[] } {
  const fence: JsonColumns<Transition> = {
    id: ['uuid', ({ delivery }) => delivery.id],
    before: ['integer', ({ delivery }) => delivery.attempts],
  };
  const { from, column, json } = jsonItems<Transition>(db, { ...fence, ...columns });
  const assignments = Object.keys(columns).map((name) => `${name} = ${column(name)}`);
  const sql = `update deliveries set ${assignments.join(', ')}, lease_owner = null from ${from}
     where deliveries.id = ${column('id')} and deliveries.attempts = ${column('before')} and ${isOurs}`;
  return { sql, values: [json(transitions), node] };
}

/** The rows that follow from the new states, whatever they are. */
function writesOf(transitions: Transition[]): Write[] {
  const emailIds = transitions.map(({ delivery }) => delivery.emailId);
  const tried = transitions.filter(({ attempt }) => wasTried(attempt));
  return [
    (all) => bumpUpdatedAt(all, emailIds, latestOf(transitions)),
    (all) => insertRows(all, 'attempts', tried.map(attemptRow)),
    (all) => insertRows(all, 'events', transitions.map(eventOf)),
  ];
}

const latestOf = (transitions: Transition[]) =>
  Math.max(...transitions.map(({ attempt }) => attempt.endedAt));

const tlsCountOf = ({ delivery: { domain }, attempt }: Transition) => ({ domain, attempt });

const isOfServer = ({ delivery: { orgId } }: Transition) => orgId === serverOrgId;

/** Whether the outcome says something about the recipient's address, which may be suppressed for it. */
function concernsAddress(transition: Transition, suppressAfter: readonly string[]): boolean {
  if (suppressAfter.length === 0 || isTestMail(transition.delivery) || isOfServer(transition)) return false;
  return suppressionReason(transition, suppressAfter) !== null || softMailboxCategory(transition) !== null;
}

/** The outcomes that their rows have already: an earlier try of this commit succeeded. */
async function writtenBefore(trx: Trx, transitions: Transition[]): Promise<Set<Transition>> {
  const nameOf = (...parts: (string | number)[]) => parts.join(' ');
  const ids = transitions.map(({ delivery }) => delivery.id);
  const tried = await trx('attempts')
    .whereIn('delivery_id', ids)
    .select('delivery_id', 'number', 'started_at', 'ended_at');
  const ended = await trx('deliveries').whereIn('id', ids).select('id', 'status', 'updated_at');
  const known = new Set([
    ...tried.map((row) => nameOf(row.delivery_id, row.number, row.started_at, row.ended_at)),
    ...ended.map((row) => nameOf(row.id, row.status, row.updated_at)),
  ]);
  return new Set(
    transitions.filter(({ delivery: { id }, attempts, attempt, status }) =>
      known.has(
        wasTried(attempt)
          ? nameOf(id, attempts, attempt.startedAt, attempt.endedAt)
          : nameOf(id, status, attempt.endedAt),
      ),
    ),
  );
}

/** The columns that an outcome changes, besides the lease. */
const columns: JsonColumns<Transition> = {
  status: ['text', ({ status }) => status],
  attempts: ['integer', ({ attempts }) => attempts],
  due_at: ['bigint', ({ dueAt }) => dueAt],
  updated_at: ['bigint', ({ attempt }) => attempt.endedAt],
  delivered_at: ['bigint', ({ deliveredAt }) => deliveredAt],
  // The queue is searched by the replies to what still waits.
  last_reply: ['text', ({ dueAt, attempt }) => (dueAt === null ? null : json(attempt.reply))],
  mx: ['text', ({ dueAt, attempt }) => (dueAt === null ? null : json(attempt.mx))],
  tls: ['text', ({ dueAt, attempt }) => (dueAt === null ? null : json(attempt.tls))],
  packed: ['bytea', ({ dueAt, attempt }) => (dueAt === null ? packedResult(attempt) : null)],
  bounce: ['text', ({ bounce }) => json(bounce)],
};

function attemptRow({ delivery, attempts, attempt }: Transition): object {
  return {
    id: newId(),
    delivery_id: delivery.id,
    number: attempts,
    started_at: attempt.startedAt,
    ended_at: attempt.endedAt,
    // Older versions filled columns instead, of which these two must not be null.
    verdict: '',
    transcript: '',
    packed: packAttempt(attempt),
  };
}

/** The delivery's row and the event have the same. */
const packedResults = new WeakMap<Attempt, string>();

function packedResult(attempt: Attempt): string {
  const known = packedResults.get(attempt);
  if (known !== undefined) return known;
  const packed = packResult(attempt);
  packedResults.set(attempt, packed);
  return packed;
}

function eventOf({ delivery, attempt, event }: Transition) {
  const { orgId, emailId, recipient } = delivery;
  const { response: _, mx: __, tls: ___, ...data } = event.data;
  const row = eventRow({ orgId, emailId, recipient, type: event.type, at: attempt.endedAt, data });
  return { ...row, packed: packedResult(attempt) };
}

function suppressionAfter(transition: Transition, suppressAfter: readonly string[]): NewSuppression[] {
  const { recipient, orgId, emailId } = transition.delivery;
  const reason = suppressionReason(transition, suppressAfter);
  if (reason === null) return [];
  const reply = replyOf(transition);
  return [{ orgId, address: recipient, addressKey: compareKey(recipient), reason, emailId, reply }];
}

function softBounceOf(transition: Transition): SoftBounce[] {
  const category = softMailboxCategory(transition);
  if (category === null) return [];
  const { recipient, orgId, emailId } = transition.delivery;
  const reply = replyOf(transition);
  return [{ orgId, recipient, emailId, category, at: transition.attempt.endedAt, reply }];
}

function replyOf({ attempt: { reply, verdict } }: Transition): Reply {
  return replyIn(verdict.diagnostic, reply);
}

function json(value: unknown): string | null {
  return value === null ? null : JSON.stringify(value);
}
