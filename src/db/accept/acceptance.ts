/**
 * THE instant of acceptance. When the transaction of `acceptAll` has committed, its sends are promises: their
 * credits are spent, their bytes are on disk, their deliveries are due, their idempotency keys are taken. Before
 * that, nothing has happened.
 *
 * Takes many sends at once, so that a crowd shares one sync of the disk. Each send is decided for itself, in the
 * order of docs/design.md section 2; one that is refused or answered before leaves nothing behind and does not disturb
 * its neighbours. An organization is locked while its sends are decided, on PostgreSQL against other nodes too: so
 * its credits, its day's capacity and its idempotency keys are exact. A send that comes again, because the answer to its
 * commit was lost, is known by what that commit wrote (accepted-before.ts).
 */
import { dayOf, untilMidnight } from '../../accounts/limits.ts';
import { failpoint } from '../../base/failpoints.ts';
import { lockOrganizations, type Organization } from '../accounts/organizations.ts';
import { suppressedAmong, suppressionKey } from '../accounts/suppressions.ts';
import { insertRows, insertWithBytes } from '../engine/insert-rows.ts';
import type { Db, Trx } from '../engine/open.ts';
import { parallel } from '../engine/parallel.ts';
import { inSharedCommit } from '../engine/shared-commit.ts';
import { type AcceptanceRows, type AcceptBatch, newRows, type Send } from './acceptance-rows.ts';
import { type AcceptedBefore, findAcceptedBefore } from './accepted-before.ts';
import { balanceOf, creditNews, entry, renew, renewalEntry, saveCredits, spend } from './credit-ledger.ts';
import { addUsages, lockUsages } from './daily-usage.ts';
import { type EarlierAnswer, findEarlier, isRepeat, type SendAnswerRecord } from './idempotency.ts';

/** What became of a send: accepted, answered with an earlier send's answer, or refused. */
export type Decision =
  | { answer: SendAnswerRecord; replayed: boolean }
  | { refused: 'ALL_RECIPIENTS_SUPPRESSED' | 'INSUFFICIENT_CREDITS' | 'KEY_REUSED' }
  | { refused: 'DAILY_CAPACITY'; limit: number; retryAfterMs: number };

export interface AcceptPolicy {
  /** How long idempotency keys hold. */
  keepMs: number;
  /** The part of the quota that, when left, is low. */
  lowShare: number;
}

/** What the decisions read and move on as they are made. */
interface Books {
  orgs: Map<string, Organization>;
  suppressed: Set<string>;
  /** By the emails' ids: what an earlier try of the same commit has taken. */
  taken: Map<string, AcceptedBefore>;
  earlier: EarlierAnswer;
  /** Accepted recipients of the day, by organization: before this batch and by it; requests refused by it. */
  days: Map<string, { orgId: string; day: string; before: number; emails: number; refused: number }>;
  rows: AcceptanceRows;
  policy: AcceptPolicy;
}

export async function acceptAll(db: Db, sends: Send[], policy: AcceptPolicy): Promise<Decision[]> {
  return inSharedCommit(db, async (trx) => {
    const books = await openBooks(trx, sends, policy);
    const decisions = sends.map((send) => decide(send, books));
    const {
      emails,
      message_bases: bases,
      messages,
      deliveries,
      events,
      credit_entries: entries,
    } = books.rows.tables;
    await parallel(trx, [
      () => insertRows(trx, 'emails', emails),
      () => saveCredits(trx, books.orgs.values()),
      () => addUsages(trx, [...books.days.values()]),
      () => books.earlier.save(trx),
    ]);
    // Which refer to emails; and deliveries to messages.
    await parallel(trx, [
      () => insertWithBytes(trx, 'message_bases', bases),
      () => insertWithBytes(trx, 'messages', messages),
      () => insertRows(trx, 'events', events),
      () => insertRows(trx, 'credit_entries', entries),
    ]);
    await insertRows(trx, 'deliveries', deliveries);
    failpoint('accepting');
    return decisions;
  });
}

/** What `acceptAll` would decide of a send now. Keeps nothing but that a request refused with 429 does not count. */
export async function dryRun(db: Db, send: Send, policy: AcceptPolicy): Promise<Decision> {
  return db.transaction(async (trx) => {
    const books = await openBooks(trx, [send], policy);
    const decision = decide(send, books);
    await addUsages(
      trx,
      [...books.days.values()].map((day) => ({ ...day, emails: 0 })),
    );
    return decision;
  });
}

/** What the later ones look up may be changed by whoever holds the locks: those are asked for first. */
async function openBooks(trx: Trx, sends: Send[], policy: AcceptPolicy): Promise<Books> {
  const day = dayOf(Math.max(...sends.map(({ acceptedAt }) => acceptedAt)));
  const ids = new Set(sends.map(({ orgId }) => orgId));
  const days = [...ids].map((orgId) => ({ orgId, day }));
  const pairs = sends.flatMap(({ orgId, recipients }) =>
    recipients.map(({ key }) => ({ orgId, addressKey: key })),
  );
  const [orgs, usages, earlier, suppressed] = await parallel(trx, [
    () => lockOrganizations(trx, ids),
    () => lockUsages(trx, days),
    () => findEarlier(trx, sends),
    () => suppressedAmong(trx, pairs),
  ]);
  return {
    orgs: new Map(orgs.map((org) => [org.id, org])),
    ...{ suppressed, earlier },
    taken: await findAcceptedBefore(trx, sends),
    days: new Map(
      [...usages.values()].map(({ orgId, emails }) => [
        orgId,
        { orgId, day, before: emails, emails: 0, refused: 0 },
      ]),
    ),
    rows: newRows(),
    policy,
  };
}

function decide(send: Send, books: Books): Decision {
  const known = books.orgs.get(send.orgId);
  if (!known) throw new Error(`organization ${send.orgId} is gone`);

  const taken = books.taken.get(send.emailId);
  if (taken) return { answer: taken.answer, replayed: !taken.isOurs };

  const before = books.earlier.get(send);
  if (before && isRepeat(before, send, books.policy.keepMs)) {
    return before.requestHash === send.idempotency.requestHash
      ? { answer: before.answer, replayed: true }
      : { refused: 'KEY_REUSED' };
  }

  const isSuppressed = (key: string) => books.suppressed.has(suppressionKey(send.orgId, key));
  const wanted = send.recipients.filter(({ key }) => !isSuppressed(key));
  if (wanted.length === 0) return { refused: 'ALL_RECIPIENTS_SUPPRESSED' };

  const org = inPeriod(known, send, books);
  const payable = Math.min(balanceOf(org) ?? wanted.length, wanted.length);
  const today = books.days.get(send.orgId)!;
  if (org.emailsPerDay !== null && today.before + today.emails + payable > org.emailsPerDay) {
    today.refused += 1;
    const retryAfterMs = untilMidnight(send.acceptedAt);
    return { refused: 'DAILY_CAPACITY', limit: org.emailsPerDay, retryAfterMs };
  }
  if (payable <= 0) return { refused: 'INSUFFICIENT_CREDITS' };

  const accepted = new Set(wanted.slice(0, payable));
  const lotOf = (recipient: Send['recipients'][number]): AcceptBatch => {
    if (isSuppressed(recipient.key)) return 'suppressed';
    return accepted.has(recipient) ? 'queued' : 'insufficient_credit';
  };
  today.emails += payable;
  charge(org, payable, send, books);
  const answer = books.rows.add(send, send.recipients.map(lotOf), payable);
  books.earlier.set(send, answer);
  return { answer, replayed: false };
}

/** A new month's quota, on the organization's day. */
function inPeriod(org: Organization, send: Send, books: Books): Organization {
  const renewal = renew(org, send.acceptedAt);
  if (!renewal) return org;
  books.orgs.set(org.id, renewal.org);
  if (renewal.given > 0) books.rows.tables.credit_entries.push(renewalEntry(renewal));
  return renewal.org;
}

function charge(org: Organization, credits: number, send: Send, books: Books): void {
  const paid = spend(org, credits);
  books.rows.tables.credit_entries.push(entry(paid, -credits, 'send', send.emailId, send.acceptedAt));
  const { org: told, news } = creditNews(paid, books.policy.lowShare);
  books.orgs.set(org.id, told);
  for (const { type, data } of news) books.rows.addNews(org.id, type, data, send.acceptedAt);
}
