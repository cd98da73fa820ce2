/** Reads from the database what why.ts explains. */
import { readPause } from '#accounts/rows/pauses.ts';
import { type ReceiverGroup, receiverGroupOf } from '#mail/deliver/receivers.ts';
import type { StoredWarmUp } from '#mail/deliver/warm-up.ts';
import { allowanceOf, isWarm } from '#mail/deliver/warm-up-plan.ts';
import { poolOf } from '#mail/queue/rows/ip-pools.ts';
import { countWaiting } from '#mail/queue/rows/waiting-counts.ts';
import { readDestinationStatuses, routesOf } from '#mail/record/rows/destination-status-rows.ts';
import type { AttemptRecord, DeliveryRecord, EmailRecord } from '#mail/record/rows/emails.ts';
import { readWarmUps } from '#mail/record/rows/warm-up-rows.ts';
import { conditionsAt, named, type Subject } from '#operate/condition/condition.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { parseMailbox } from '#platform/values/address.ts';
import type { WhyInput } from './why.ts';

/** One for each recipient. `served`: whether a server runs; read from the database if left out. */
export async function readWhyInputs(
  db: Db,
  email: EmailRecord,
  { attempts, now, served }: { attempts: AttemptRecord[]; now: number; served?: boolean },
): Promise<WhyInput[]> {
  const statuses = await readDestinationStatuses(db, now, served);
  const conditionOf = conditionsAt(statuses, now);
  const pool = await poolOf(db, email.orgId, email.stream);
  const pause = await readPause(db, email.orgId);
  const routes = await routesOf(
    db,
    email.deliveries.map(({ domain }) => domain),
  );
  const hasNoSource = statuses.missingPools.includes(pool);
  const byDelivery = Map.groupBy(attempts, ({ deliveryId }) => deliveryId);
  const attemptsOf = ({ id }: DeliveryRecord) => byDelivery.get(id) ?? [];
  const subjects = email.deliveries.map((delivery) => ({
    ...named(routes.get(delivery.domain) ?? delivery.domain),
    domains: [delivery.domain],
    dueAt: delivery.nextAttemptAt,
    noSource: hasNoSource ? { pools: [pool], count: 1, isWhole: true } : null,
    paused: pause && { count: 1, isWhole: true, pause },
    greylisted: greylistedBy(attemptsOf(delivery)),
  }));
  // Only what throttles has a time to drain.
  const throttled = subjects.filter((subject) => conditionOf(subject).cause === 'throttled');
  const waiting = await countWaiting(db, [...new Set(throttled.map(({ destination }) => destination))]);
  const full = fullReceivers(await readWarmUps(db));
  return email.deliveries.map((delivery, at) => {
    const receivers = receiverGroupOf(routes.get(delivery.domain));
    const subject = subjects[at]!;
    return {
      delivery,
      last: attemptsOf(delivery).at(-1) ?? null,
      withheld: withheldBy(email, delivery),
      action: actionOf(email, delivery),
      newTo: full.has(receivers) ? receivers : null,
      condition: conditionOf({ ...subject, waiting: waiting.get(subject.destination) ?? null }),
      now,
      emailId: email.id,
      orgId: email.orgId,
      from: parseMailbox(email.from)?.address ?? email.from,
    };
  });
}

/** The receivers that some new address of ours has used its day's allowance for. */
function fullReceivers(warmUps: StoredWarmUp[]): Set<ReceiverGroup> {
  const full = warmUps.filter((one) => !isWarm(one) && one.used >= allowanceOf(one.step));
  return new Set(full.map(({ receivers }) => receivers));
}

/** Null unless the last attempt was greylisted. */
function greylistedBy(attempts: AttemptRecord[]): Subject['greylisted'] {
  const isGreylisted = ({ verdict }: AttemptRecord) =>
    verdict.outcome === 'deferred' && verdict.category === 'greylisting';
  const last = attempts.at(-1);
  if (!last || !isGreylisted(last)) return null;
  return { since: attempts.find(isGreylisted)!.endedAt, reply: last.verdict.diagnostic };
}

/** From the event of the end, because nothing that was not tried has an attempt. */
function withheldBy({ events }: EmailRecord, { recipient, status }: DeliveryRecord): string | null {
  if (status !== 'expired') return null;
  const end = events.findLast(({ type, recipient: of }) => type === 'email.expired' && of === recipient);
  return end?.data.category === 'withheld' ? String(end.data.diagnostic) : null;
}

const pauseIdIn = ({ pauseId }: Record<string, unknown>) => (typeof pauseId === 'string' ? pauseId : null);

/** From the event of the latest action. */
function actionOf({ events }: EmailRecord, { recipient, status }: DeliveryRecord): WhyInput['action'] {
  const event = events.findLast((each) => each.type === `email.${status}` && each.recipient === recipient);
  const reason = event?.data.reason;
  return event && typeof reason === 'string'
    ? { at: event.at, reason, bySender: event.data.bySender === true, pauseId: pauseIdIn(event.data) }
    : null;
}
