/** What becomes of accepted mail: each recipient gets it once, in time, or it is known why not. */

import { leaseMs } from '#platform/database/tables/nodes.ts';
import type { Check, Finding } from './check.ts';

const minute = 60_000;
/** The longest wait of due mail once nothing has been wrong for `calmForMs`: a circuit probes at least this often. */
const maxOverdueMs = 10 * minute;
const calmForMs = 20 * minute;
/** The longest attempt. */
const maxSendingMs = 30 * minute;
/** How long after its end a mail may be found to have ended. */
const graceMs = 3 * minute;

const noDeliveredWithoutCopy: Check = ({ scene, rows }) => {
  for (const { status, email_id, recipient } of rows.deliveries()) {
    if (status !== 'delivered') continue;
    const mail = scene.book.byEmailId.get(email_id);
    if (!mail || scene.book.copiesOf(mail.number, recipient).length > 0) continue;
    return { text: `delivered to ${recipient}, but no host has taken it`, mail: mail.number };
  }
  return null;
};

const noSecondCopyUnmarked: Check = ({ scene, rows }) => {
  for (const { id, status, email_id, message_id, recipient } of rows.deliveries()) {
    if (status === 'sending') continue;
    const mail = scene.book.byEmailId.get(email_id);
    // Of this email: a call that is repeated when its key is forgotten makes another one.
    const copies = mail ? scene.book.copiesOf(mail.number, recipient) : [];
    const own = copies.filter(({ messageId }) => messageId.includes(message_id));
    if (own.length < 2 || rows.isDoubtful(id)) continue;
    return {
      text: `${own.length} copies for ${recipient}, and no attempt says possibleDuplicate`,
      mail: mail!.number,
    };
  }
  return null;
};

/** At most one final event, whatever is repeated; a mail that was delivered may come back later. */
const anOutcomeCountsOnce: Check = ({ rows }) => {
  const [twice] = rows.all<{ email_id: string; recipient: string; count: number }>(
    `select email_id, recipient, count(*) as count from events
     where type in ('email.delivered', 'email.bounced', 'email.expired', 'email.canceled')
     group by email_id, recipient, type = 'email.bounced' having count(*) > 1`,
  );
  if (!twice) return null;
  return { text: `${twice.count} final events for ${twice.recipient}`, emailId: twice.email_id };
};

const attemptsAreCounted: Check = ({ rows }) => {
  const [wrong] = rows.all<{ id: string; attempts: number; found: number; last: number }>(
    `select d.id, d.attempts, count(a.id) as found, coalesce(max(a.number), 0) as last
     from deliveries d left join attempts a on a.delivery_id = d.id
     group by d.id having found <> d.attempts or last <> d.attempts`,
  );
  return wrong
    ? {
        text: `delivery ${wrong.id} counts ${wrong.attempts} attempts and has ${wrong.found}, the last is number ${wrong.last}`,
      }
    : null;
};

/** An attempt that takes no time is the record of one that a crash has ended. */
const nothingIsTriedAfterItsExpiry: Check = ({ rows }) => {
  const [late] = rows.all<{ recipient: string; started_at: number; expires_at: number }>(
    `select recipient, started_at, expires_at from attempts join deliveries on deliveries.id = delivery_id
     where has_deadline and started_at >= expires_at and ended_at > started_at`,
  );
  return late
    ? { text: `${late.recipient} was tried ${late.started_at - late.expires_at} ms after its deadline` }
    : null;
};

/** Also behind a closed door: mail ends in time, whatever its destination does. */
const nothingOutlivesItsAge: Check = ({ scene, rows, wellMs, openForMs, isClockMoved }) => {
  if (isClockMoved || openForMs('pause') > 0 || wellMs < graceMs) return null;
  const end = scene.serviceTime - graceMs;
  const old = rows
    .deliveries()
    .find(({ status, expires_at }) => (status === 'queued' || status === 'deferred') && expires_at < end);
  if (!old) return null;
  const text = `${old.recipient} is still ${old.status}, ${Math.round((scene.serviceTime - old.expires_at) / 1000)} s after its end`;
  return { text, emailId: old.email_id };
};

/** What is leased is in memory, and nothing else is. Sends that are admitted together may exceed the limit of four a little. */
const memoryIsBounded: Check = ({ scene }) => {
  const max = 6 * scene.config.mtaConcurrency * scene.nodes.length;
  const { maxLeased } = scene;
  return maxLeased > max
    ? { text: `${maxLeased} deliveries were leased, and at most ${max} should be` }
    : null;
};

const aLeaseHasAnOwner: Check = ({ rows }) => {
  const wrong = rows
    .deliveries()
    .find(({ status, lease_owner }) => (status === 'sending') !== (lease_owner !== null));
  return wrong
    ? { text: `delivery ${wrong.id} is ${wrong.status} and leased to ${wrong.lease_owner}` }
    : null;
};

/** Unless a node may have lost the leases of what it was sending. */
const leasesAreExclusive: Check = ({ scene, hasHappened }) => {
  const [text] = scene.book.overlaps;
  return text && !hasHappened('no way to the database', 'power loss') ? { text } : null;
};

/** A process renews the leases of what it sends; those of one that died end at the next start. */
const leasesAreKept: Check = ({ scene, rows, calmMs }) => {
  if (calmMs < 2 * minute) return null;
  const late = rows
    .deliveries()
    .find(({ status, due_at }) => status === 'sending' && due_at! < scene.serviceTime + leaseMs / 4);
  if (!late) return null;
  const text = `the lease of ${late.recipient} ends in ${Math.round((late.due_at! - scene.serviceTime) / 1000)} s, and has not been renewed`;
  return { text, emailId: late.email_id };
};

/** A process that crashes again and again interrupts an attempt each time. */
const earlyForEach = 10;
/** What makes a mail due at once. */
const hastening = [
  'retry',
  'hold',
  'suspend',
  'pause',
  'crash',
  'crash at a statement',
  'crash at the dot',
  'restart',
  'power loss',
];

/** Each of them makes some attempts early; a mail that is tried again and again has no such cause. */
const aRetryWaits: Check = ({ rows, faults, isClockMoved }) => {
  if (isClockMoved) return null;
  const allowed = earlyForEach * faults.filter(({ name }) => hastening.includes(name)).length;
  const [early] = rows.all<{ recipient: string; count: number; wait: number }>(
    `select recipient, count(*) as count, min(a.started_at - b.started_at) as wait from attempts a
     join attempts b on b.delivery_id = a.delivery_id and b.number = a.number - 1
     join deliveries on deliveries.id = a.delivery_id where not has_deadline and a.started_at - b.started_at < 5000
     group by a.delivery_id having count(*) > ?`,
    allowed,
  );
  return early
    ? {
        text: `${early.recipient} was tried again ${early.count} times too early, once after ${early.wait} ms`,
      }
    : null;
};

const timesLieInThePast: Check = ({ scene, rows, isClockMoved }) => {
  if (isClockMoved) return null;
  const now = scene.serviceTime + 1000;
  const [wrong] = rows.all<{ type: string; at: number }>(
    'select type, at from events where at > ? limit 1',
    now,
  );
  return wrong ? { text: `the event ${wrong.type} is ${wrong.at - now} ms in the future` } : null;
};

const noBacklogStarves: Check = ({ scene, rows, calmMs }) => {
  if (calmMs < calmForMs) return null;
  const now = scene.serviceTime;
  const late = rows
    .deliveries()
    .find(
      ({ status, due_at, updated_at }) =>
        (['queued', 'deferred', 'scheduled'].includes(status) && due_at! < now - maxOverdueMs) ||
        (status === 'sending' && updated_at < now - maxSendingMs),
    );
  if (!late) return null;
  const text = `${late.recipient} is ${late.status} and has been since ${Math.round((now - (late.lease_owner ? late.updated_at : late.due_at!)) / 1000)} s, although nothing is wrong`;
  return { text, emailId: late.email_id };
};

const scheduledMailIsNotEarly: Check = ({ scene, isClockMoved }) => {
  if (isClockMoved) return null;
  for (const { scheduledAt, isChanged, recipients, number } of scene.book.mails) {
    if (scheduledAt === null || isChanged) continue;
    for (const recipient of recipients) {
      const early = scene.book.copiesOf(number, recipient).find(({ at }) => at < scheduledAt - 1000);
      if (early) return { text: `sent ${scheduledAt - early.at} ms before its time`, mail: number };
    }
  }
  return null;
};

/** After a wait that is longer than the maximum age. */
const nothingAcceptedIsLost: Check = ({ scene, rows }) => {
  const open = ['scheduled', 'queued', 'sending', 'deferred'];
  const now = scene.serviceTime;
  // Mail that was accepted while the clock was ahead expires by that clock.
  const left = rows
    .deliveries()
    .find(({ status, expires_at }) => status === 'held' || (open.includes(status) && expires_at < now));
  if (!left) return null;
  return {
    text: `${left.recipient} is still ${left.status}, hours after the end of all faults`,
    emailId: left.email_id,
  };
};

/** What can make mail fail permanently. */
const causes = ['dns lies', 'host refuses all', 'host moves'];

const mailFailsOnlyForAReason: Check = ({ scene, rows, hasHappened }) => {
  for (const row of rows.deliveries()) {
    const mail = scene.book.byEmailId.get(row.email_id);
    if (!mail || /-(unknown|quota|bounces)@/.test(row.recipient)) continue;
    const finding: Finding = {
      text: `${row.recipient} is ${row.status} without a reason`,
      mail: mail.number,
    };
    if (row.status === 'bounced' && !hasHappened(...causes)) return finding;
    if (row.status === 'canceled' && !mail.isChanged && !hasHappened('cancel')) return finding;
    if (row.status === 'suppressed' && !hasHappened(...causes)) return finding;
  }
  return null;
};

export const deliveries = {
  noDeliveredWithoutCopy,
  noSecondCopyUnmarked,
  anOutcomeCountsOnce,
  attemptsAreCounted,
  nothingIsTriedAfterItsExpiry,
  nothingOutlivesItsAge,
  memoryIsBounded,
  aLeaseHasAnOwner,
  leasesAreExclusive,
  leasesAreKept,
  aRetryWaits,
  timesLieInThePast,
  noBacklogStarves,
  scheduledMailIsNotEarly,
};

export const deliveriesAtEnd = { nothingAcceptedIsLost, mailFailsOnlyForAReason };
