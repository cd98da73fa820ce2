/**
 * Why a recipient's mail stands where it stands, in a sentence or two: what was said, by whom, and what comes next.
 * A pure function of what is stored; `when` writes a time for whoever reads it, `remedies` say what such a reader can do.
 * Strangers' words are in it as they came.
 */

import type { Pause } from '../../db/accounts/organizations.ts';
import type { AttemptRecord, DeliveryRecord, EmailRecord } from '../../db/events/emails.ts';
import type { DestinationStatuses } from '../../db/queue/destination-status-rows.ts';
import type { DeliveryStatus, Fault } from '../../glossary.ts';
import { domainOf, parseMailbox } from '../../mail/address.ts';
import { replyText } from '../../outcome.ts';
import { blocklistAdvice } from './blocklist-advice.ts';
import {
  type DestinationStatus,
  destinationStatus,
  reasonToWait,
  type StatusSubject,
  type When,
} from './destination-status.ts';

export interface WhyFacts {
  delivery: DeliveryRecord;
  /** The latest attempt, where there was one. */
  last: AttemptRecord | null;
  /** What the operator has ordered, where the state is by order. */
  order: { at: number; reason: string } | null;
  /** Where it is to go, and how that stands. */
  place: StatusSubject;
  condition: DestinationStatus;
  now: number;
  emailId: string;
  orgId: string;
  /** The sender's address. */
  from: string;
}

/** What can be done about it, each a sentence or a part of one, with what it needs of the story. */
export interface Remedies {
  /** Behind "until it is released". */
  release(story: WhyFacts): string;
  /** A sentence: where the report is. */
  report(story: WhyFacts): string;
  /** A sentence: how the address is taken off the suppression list. */
  unsuppress(story: WhyFacts): string;
  /** A sentence: how there are credits again. */
  grant(story: WhyFacts): string;
  /** A sentence: how there is a source address again that its organization may send from. */
  source(story: WhyFacts): string;
  /** Behind "look at the domain". */
  verify: string;
  /** A sentence: who says whether this server is on blocklists. */
  doctor: string;
}

type Tell = (story: WhyFacts, when: When, remedies: Remedies) => string;

export const why: Tell = (story, when, remedies) => sentences[story.delivery.status](story, when, remedies);

const sentences: Record<DeliveryStatus, Tell> = {
  queued(story, when, remedies) {
    return `It has not been tried yet. ${next(story, when, remedies)}`;
  },
  sending(story) {
    return `It is being sent now, attempt ${story.delivery.attempts + 1}.${before(story)}`;
  },
  deferred(story, when, remedies) {
    return `${said(story)} That is not final${remotely(story)}.${doubt(story)}${listed(story, remedies)} ${next(story, when, remedies)}`;
  },
  held(story, when, { release }) {
    return `It has been held by the operator${ordered(story, when, 'since')} until it is released${release(story)}.${before(story)}`;
  },
  canceled(story, when) {
    return `It was canceled by the operator${ordered(story, when, 'at')}; nothing more is sent.${before(story)}`;
  },
  delivered(story, when) {
    const at = story.delivery.deliveredAt === null ? '' : ` ${when(story.delivery.deliveredAt)}`;
    return `Delivered${at}: ${said(story)} That host is now responsible for the message.`;
  },
  bounced(story, when, remedies) {
    const { bounce, deliveredAt } = story.delivery;
    const kind = bounce ? `a ${bounce.type} bounce (${bounce.category})` : 'a bounce';
    if (story.last?.outcome.outcome === 'bounced' || !bounce) {
      return `${said(story)} That is final, ${kind}: ${advice(story, remedies)}`;
    }
    const taken = deliveredAt === null ? 'It may have been accepted' : `It was accepted ${when(deliveredAt)}`;
    return `${taken}, and returned as a bounce message ${when(story.delivery.updatedAt)}: "${bounce.diagnostic}". That is final, ${kind}: ${advice(story, remedies)} ${remedies.report(story)}`.trimEnd();
  },
  complained: (story) =>
    `It was delivered, and the recipient complained about it as spam; do not send to this address again.${before(story)}`,
  expired(story, when) {
    const { attempts, expiresAt } = story.delivery;
    const tried = attempts === 1 ? 'one attempt' : `${attempts} attempts`;
    return `It expired after ${tried}, at its maximum age (${when(expiresAt)}). ${said(story)}${doubt(story)} Nothing more is sent.`;
  },
  suppressed: (story, _, { unsuppress }) =>
    `It was not sent: the address is on the suppression list. ${unsuppress(story)}`,
  insufficient_credit: (story, _, { grant }) =>
    `It was not sent: the organization had no credits left. ${grant(story)}`,
};

/** What comes next of mail that waits. */
function next(story: WhyFacts, when: When, remedies: Remedies): string {
  const { delivery, condition, place, now } = story;
  const expires = `It expires ${when(delivery.expiresAt)}.`;
  const { nextAttemptAt } = delivery;
  if (nextAttemptAt === null) return expires;
  const remedy = condition.is === 'no_source' ? ` ${remedies.source(story)}` : '';
  const reason = reasonToWait(condition, place, when) + remedy;
  if (nextAttemptAt <= now) return `${reason} ${expires}`;
  const isShut = ['suspended', 'circuit_open', 'no_source', 'greylisting', 'paused'].includes(condition.is);
  const shut = isShut ? ` ${reason}` : '';
  return `The next attempt is due ${when(nextAttemptAt)}; it expires ${when(delivery.expiresAt)}.${shut}`;
}

function ordered({ order }: WhyFacts, when: When, word: 'since' | 'at'): string {
  return order === null ? '' : ` ${word} ${when(order.at)} ("${order.reason}")`;
}

/** Our own deferrals say so where they are quoted. */
function remotely({ last }: WhyFacts): string {
  return last?.outcome.origin === 'remote' ? ': the failure is on the remote side' : '';
}

/** The remote reply in quotation marks where there was one, else what went wrong. */
function said({ last }: WhyFacts): string {
  if (!last) return 'No attempt is recorded.';
  const host = last.mx ? `${last.mx.host} [${last.mx.address}]` : null;
  if (last.reply) return `${host ?? 'The host'} said "${replyText(last.reply)}" at attempt ${last.number}.`;
  const { origin, diagnostic } = last.outcome;
  if (origin === 'local') return `This server itself deferred it at attempt ${last.number}: ${diagnostic}.`;
  return `Attempt ${last.number}${host ? ` at ${host}` : ''} failed: ${diagnostic}.`;
}

function before(story: WhyFacts): string {
  return story.last ? ` Before: ${said(story)}` : '';
}

function doubt({ last }: WhyFacts): string {
  return last?.outcome.possibleDuplicate
    ? ' The connection ended after the whole message had been sent, so it may have arrived nevertheless.'
    : '';
}

const advices: Record<Fault, (remedies: Remedies) => string> = {
  recipient: () => 'the address does not accept this mail; correct the address, or stop sending to it.',
  sender: ({ verify }) => `the host does not trust the sender; check the domain ${verify}.`,
  content: () => 'the host rejected the content of this message; other messages may be accepted.',
  infrastructure: () => 'the host does not accept mail like this; its reply says what it wants.',
};

function advice(story: WhyFacts, remedies: Remedies): string {
  const { last, delivery } = story;
  const isLast = last?.outcome.outcome === 'bounced' || !delivery.bounce;
  const told = isLast ? last?.outcome : delivery.bounce;
  if (told?.category === 'blocked') return blocklistAdvice(refused(story, told.diagnostic), remedies.doctor);
  return told?.fault ? advices[told.fault](remedies) : 'nothing more is sent.';
}

/** Mail that was put off because of a blocklist waits for somebody to do something about it. */
function listed(story: WhyFacts, { doctor }: Remedies): string {
  const { last } = story;
  if (last?.outcome.category !== 'blocked') return '';
  const text = blocklistAdvice(refused(story, last.outcome.diagnostic), doctor);
  return ` ${text[0]!.toUpperCase()}${text.slice(1)}`;
}

function refused({ last, from }: WhyFacts, text: string) {
  return { text, host: last?.mx?.address ?? null, senderDomain: domainOf(from) ?? from };
}

/** What is known besides the email itself. */
export interface Known {
  attempts: AttemptRecord[];
  standings: DestinationStatuses;
  /** Which destination served each domain last. */
  routes: Map<string, string>;
  /** The pool of source addresses that its organization sends from. */
  pool: string;
  /** Its organization is paused. */
  pause: Pause | null;
  now: number;
}

/** One for each recipient. */
export function storiesOf(
  email: EmailRecord,
  { attempts, standings, routes, pool, pause, now }: Known,
): WhyFacts[] {
  const isStranded = standings.missingPools.includes(pool);
  const stranded = isStranded ? { pools: [pool], count: 1, isWhole: true } : null;
  const paused = pause && { count: 1, isWhole: true, pause };
  return email.deliveries.map((delivery) => {
    const { id, domain, nextAttemptAt: dueAt } = delivery;
    const own = attempts.filter(({ deliveryId }) => deliveryId === id);
    const place: StatusSubject = {
      destination: routes.get(domain) ?? domain,
      domains: [domain],
      dueAt,
      ...{ stranded, paused, greylisted: greylistedBy(own) },
    };
    return {
      delivery,
      last: own.at(-1) ?? null,
      order: orderOf(email, delivery),
      place,
      condition: destinationStatus(place, standings, now),
      now,
      emailId: email.id,
      orgId: email.orgId,
      from: parseMailbox(email.from)?.address ?? email.from,
    };
  });
}

/** Where the last attempt was greylisted: since the first that was. */
function greylistedBy(attempts: AttemptRecord[]): StatusSubject['greylisted'] {
  const isGreylisted = ({ outcome: verdict }: AttemptRecord) =>
    verdict.outcome === 'deferred' && verdict.category === 'greylisting';
  const last = attempts.at(-1);
  if (!last || !isGreylisted(last)) return null;
  return { since: attempts.find(isGreylisted)!.endedAt, reply: last.outcome.diagnostic };
}

/** The event that tells of the operator's last word. */
function orderOf({ events }: EmailRecord, { recipient, status }: DeliveryRecord): WhyFacts['order'] {
  const event = events.findLast((each) => each.type === `email.${status}` && each.recipient === recipient);
  const why = event?.data.reason;
  return event && typeof why === 'string' ? { at: event.at, reason: why } : null;
}
