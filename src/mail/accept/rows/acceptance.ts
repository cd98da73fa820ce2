/**
 * THE instant of acceptance. When the transaction of `acceptAll` has committed, its sends are promises: their credits are
 * spent, their bytes are on disk, their deliveries are due, their idempotency keys are taken. Before that, nothing has
 * happened.
 *
 * Many sends share one transaction, and so one sync of the disk. Each is decided separately, in the order of docs/design.md
 * section 2; a refused send writes nothing, a repeated one only its event, and neither affects the others. An organization is
 * locked while its sends are decided, on PostgreSQL against other nodes too, so its credits, daily capacity and idempotency
 * keys are exact. A send that is retried because the answer to its commit was lost is recognised by what that commit wrote
 * (accepted-before.ts).
 */

import { dayOf } from '#accounts/limits.ts';
import {
  balanceOf,
  creditEvents,
  entry,
  renew,
  renewalEntry,
  saveCredits,
  spend,
} from '#accounts/rows/credit-ledger.ts';
import { addUsages, readUsages, withMissing } from '#accounts/rows/daily-usage.ts';
import { type Organization, readOrganizations } from '#accounts/rows/organizations.ts';
import { watchRow } from '#accounts/rows/soft-bounces.ts';
import { readStreamUses, saveStreamUses } from '#accounts/rows/streams.ts';
import { listsOf, readSuppressed, suppressionKey } from '#accounts/rows/suppressions.ts';
import { failpoint } from '#platform/base/failpoints.ts';
import {
  bytesOf,
  insertRawRows,
  insertRows,
  insertWithBytes,
  maxRawBytes,
} from '#platform/database/engine/insert-rows.ts';
import type { Db, Trx } from '#platform/database/engine/open.ts';
import { readTogether } from '#platform/database/engine/read-together.ts';
import { inSharedCommit } from '#platform/database/engine/shared-commit.ts';
import { type Write, writeTogether } from '#platform/database/engine/write-together.ts';
import { eventRow } from '#platform/database/tables/event-row.ts';
import type { Send, SendAnswerRecord, SendRecipient } from '#platform/database/tables/send-record.ts';
import { type AcceptanceRows, type Disposition, newRows, type Paid } from './acceptance-rows.ts';
import { type AcceptedBefore, findAcceptedBefore } from './accepted-before.ts';
import { type DayRefusal, type DayUses, fullDay, streamUseOf } from './full-day.ts';
import { type EarlierAnswer, isRepeat, readEarlier } from './idempotency.ts';

/** Accepted, answered with the answer of an earlier send, or refused. */
export type Decision =
  | { answer: SendAnswerRecord; replayed: boolean; heldBy?: ReturnType<AcceptanceRows['hold']> }
  | { refused: 'ALL_RECIPIENTS_SUPPRESSED' | 'INSUFFICIENT_CREDITS' | 'KEY_REUSED' }
  | { refused: 'CREDITS_FOR_SOME'; needed: number; left: number }
  | DayRefusal;

export interface AcceptPolicy {
  /** How long idempotency keys are kept. */
  keepMs: number;
  /** Remaining share of the quota below which credits count as low. */
  lowShare: number;
}

/** The state that the decisions read; each decision updates it for the next. */
interface Snapshot extends DayUses {
  orgs: Map<string, Organization>;
  /** With the reasons. */
  suppressed: Map<string, string>;
  /** Addresses that bounced softly of late. */
  watched: Set<string>;
  /** Keyed by email id: sends that an earlier try of the same commit has accepted. */
  taken: Map<string, AcceptedBefore>;
  earlier: EarlierAnswer;
  rows: AcceptanceRows;
  /** Sends that repeat earlier ones, by the email that each repeats. */
  repeats: { emailId: string; event: object }[];
  policy: AcceptPolicy;
}

/** `isAtomic`: if any send is refused, nothing is written, whatever was decided about the others. */
export async function acceptAll(
  db: Db,
  sends: Send[],
  policy: AcceptPolicy,
  isAtomic = false,
): Promise<Decision[]> {
  return inSharedCommit(db, async (trx) => {
    const snapshot = await readSnapshot(trx, sends, policy);
    const decisions = sends.map((send) => decide(send, snapshot));
    if (isAtomic && decisions.some((one) => 'refused' in one)) return decisions;
    await write(trx, snapshot);
    failpoint('accepting');
    return decisions;
  });
}

async function write(trx: Trx, snapshot: Snapshot): Promise<void> {
  const { rows, orgs, days, earlier } = snapshot;
  const { tables } = rows;
  tables.events.push(...(await eventsOfRepeats(trx, snapshot)));
  const isSmall = bytesOf(tables.message_bases) + bytesOf(tables.messages) <= maxRawBytes(trx);
  const insertMessages = isSmall ? insertRawRows : insertWithBytes;
  const messages: Write[] = [
    (all) => insertMessages(all, 'message_bases', tables.message_bases),
    (all) => insertMessages(all, 'messages', tables.messages),
    (all) => insertRows(all, 'deliveries', tables.deliveries),
  ];
  await writeTogether(trx, [
    (all) => insertRows(all, 'emails', tables.emails),
    (all) => saveCredits(all, orgs.values()),
    (all) => addUsages(all, [...days.values()]),
    (all) => earlier.save(all),
    (all) => insertRows(all, 'events', tables.events),
    (all) => insertRows(all, 'credit_entries', tables.credit_entries),
    (all) => insertRows(all, 'soft_bounces', tables.soft_bounces),
    ...(isSmall ? messages : []),
  ]);
  if (!isSmall) for (const insert of messages) await insert(trx);
  await saveStreamUses(trx, snapshot.streamUses.values());
  await rows.holdHeld(trx);
}

/** An answer may be kept for longer than its email, which then has no events either. */
async function eventsOfRepeats(trx: Trx, { repeats, rows }: Snapshot): Promise<object[]> {
  if (repeats.length === 0) return [];
  const ids = [...new Set(repeats.map(({ emailId }) => emailId))];
  const kept: string[] = await trx('emails').whereIn('id', ids).pluck('id');
  const added = rows.tables.emails.map((email) => (email as { id: string }).id);
  const known = new Set([...kept, ...added]);
  return repeats.filter(({ emailId }) => known.has(emailId)).map(({ event }) => event);
}

/** Returns what `acceptAll` would decide about a send now. Writes only that a request refused with 429 does not count. */
export async function dryRun(db: Db, send: Send, policy: AcceptPolicy): Promise<Decision> {
  return db.transaction(async (trx) => {
    const snapshot = await readSnapshot(trx, [send], policy);
    const decision = decide(send, snapshot);
    const days = [...snapshot.days.values()].map((day) => ({ ...day, emails: 0 }));
    await addUsages(trx, days);
    return decision;
  });
}

/** The locks come first, because their holders may change what the other queries read. */
async function readSnapshot(trx: Trx, sends: Send[], policy: AcceptPolicy): Promise<Snapshot> {
  const day = dayOf(Math.max(...sends.map(({ acceptedAt }) => acceptedAt)));
  const ids = new Set(sends.map(({ orgId }) => orgId));
  const days = [...ids].map((orgId) => ({ orgId, day }));
  const pairs = sends.flatMap(({ orgId, stream, recipients }) =>
    recipients.flatMap(({ key }) => listsOf({ orgId, addressKey: key, stream })),
  );
  const [orgs, found, earlier, { suppressed, watched }] = await readTogether(trx, [
    readOrganizations(trx, ids),
    readUsages(trx, days),
    readEarlier(trx, sends),
    readSuppressed(trx, pairs),
  ]);
  const usages = await withMissing(trx, days, found);
  return {
    orgs: new Map(orgs.map((org) => [org.id, org])),
    suppressed,
    watched,
    earlier,
    taken: await findAcceptedBefore(trx, sends),
    days: new Map(
      [...usages.values()].map(({ orgId, emails }) => [
        orgId,
        { orgId, day, before: emails, emails: 0, refused: { second: 0, day: 0 } },
      ]),
    ),
    streamUses: await readStreamUses(trx, sends, day),
    rows: newRows(),
    repeats: [],
    policy,
  };
}

function decide(send: Send, snapshot: Snapshot): Decision {
  const known = snapshot.orgs.get(send.orgId);
  if (!known) throw new Error(`organization ${send.orgId} is gone`);

  const repeat = repeatOf(send, snapshot);
  if (repeat) return repeat;

  if (send.isServer) return record(send, snapshot, { credits: 0, fromWallet: 0 }, () => 'queued');

  const isSuppressed = (key: string) => suppressedFor(send, key, snapshot) !== undefined;
  const wanted = send.recipients.filter(({ key }) => !isSuppressed(key));
  const isReached = send.mustReach === 'to' ? wanted.some(({ kind }) => kind === 'to') : wanted.length > 0;
  if (!isReached && send.mustReach !== 'none') return { refused: 'ALL_RECIPIENTS_SUPPRESSED' };
  if (!isReached) return record(send, snapshot, { credits: 0, fromWallet: 0 }, () => 'suppressed');

  const org = inPeriod(known, send, snapshot);
  const balance = balanceOf(org) ?? wanted.length;
  const isShort = send.mustAffordAll === true && balance < wanted.length;
  const payable = Math.min(isShort ? 0 : balance, wanted.length);
  // Without credits, too: a day that is used up is reported before the lack of credits.
  const isFull = fullDay(send, org, snapshot, Math.max(payable, 1));
  if (isFull) return isFull;
  if (isShort && balance > 0) return { refused: 'CREDITS_FOR_SOME', needed: wanted.length, left: balance };
  if (payable <= 0) return { refused: 'INSUFFICIENT_CREDITS' };

  const accepted = new Set(wanted.slice(0, payable));
  const dispositionOf = (recipient: Send['recipients'][number]): Disposition => {
    if (isSuppressed(recipient.key)) return 'suppressed';
    return accepted.has(recipient) ? 'queued' : 'insufficient_credit';
  };
  // Test mail passes the same checks, and then costs nothing.
  const paid = send.isTest ? { credits: 0, fromWallet: 0 } : pay(send, snapshot, org, accepted);
  return record(send, snapshot, paid, dispositionOf);
}

/** The reason why the address gets no mail of the send, if it is suppressed. */
function suppressedFor({ orgId, stream }: Send, key: string, { suppressed }: Snapshot): string | undefined {
  const ofAll = suppressed.get(suppressionKey(orgId, key));
  return ofAll ?? (stream ? suppressed.get(suppressionKey(orgId, key, stream)) : undefined);
}

/** Charges an accepted send, counts it for the day, and watches addresses that bounced softly of late. */
function pay(send: Send, snapshot: Snapshot, org: Organization, accepted: Set<SendRecipient>): Paid {
  for (const { key } of accepted) {
    if (snapshot.watched.has(suppressionKey(send.orgId, key)))
      snapshot.rows.tables.soft_bounces.push(watchRow(send.orgId, key, send.emailId, send.acceptedAt));
  }
  snapshot.days.get(send.orgId)!.emails += accepted.size;
  const use = streamUseOf(send, snapshot);
  if (use) use.emails += accepted.size;
  return { credits: accepted.size, fromWallet: charge(org, accepted.size, send, snapshot) };
}

function repeatOf(send: Send, snapshot: Snapshot): Decision | null {
  const taken = snapshot.taken.get(send.emailId);
  if (taken) return { answer: taken.answer, replayed: !taken.isOurs };
  const before = snapshot.earlier.get(send);
  if (!before || !isRepeat(before, send, snapshot.policy.keepMs)) return null;
  if (before.requestHash !== send.idempotency.requestHash) return { refused: 'KEY_REUSED' };
  const { emailId } = before.answer;
  const { orgId, recipients, acceptedAt: at } = send;
  const [{ address: recipient }] = recipients as [SendRecipient];
  const event = eventRow({ orgId, emailId, recipient, type: 'email.repeated', at, data: {} });
  snapshot.repeats.push({ emailId, event });
  return { answer: before.answer, replayed: true };
}

function record(
  send: Send,
  snapshot: Snapshot,
  paid: Paid,
  dispositionOf: (recipient: Send['recipients'][number]) => Disposition,
): Decision {
  const { rows, earlier, orgs } = snapshot;
  const dispositions = send.recipients.map(dispositionOf);
  const answer = rows.add(send, dispositions, paid, (key) => suppressedFor(send, key, snapshot));
  const heldBy = rows.hold(send, dispositions, orgs.get(send.orgId)!);
  earlier.set(send, answer);
  return { answer, replayed: false, ...(heldBy && { heldBy }) };
}

/** Grants a new month's quota on the organization's renewal day. */
function inPeriod(org: Organization, send: Send, snapshot: Snapshot): Organization {
  const renewal = renew(org, send.acceptedAt);
  if (!renewal) return org;
  snapshot.orgs.set(org.id, renewal.org);
  if (renewal.granted > 0) snapshot.rows.tables.credit_entries.push(renewalEntry(renewal));
  return renewal.org;
}

/** Returns how many of the credits were taken from the wallet. */
function charge(org: Organization, credits: number, send: Send, snapshot: Snapshot): number {
  const paid = spend(org, credits);
  snapshot.rows.tables.credit_entries.push(entry(paid, -credits, 'send', send.emailId, send.acceptedAt));
  const { org: notified, events } = creditEvents(paid, snapshot.policy.lowShare);
  snapshot.orgs.set(org.id, notified);
  for (const event of events)
    snapshot.rows.tables.events.push(eventRow({ ...event, orgId: org.id, at: send.acceptedAt }));
  return org.wallet - paid.wallet;
}
