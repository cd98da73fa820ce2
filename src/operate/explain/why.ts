/**
 * Explains the status of a recipient's mail in a sentence or two: the last reply, its meaning, and the next step. A pure
 * function of what is stored (why-input.ts). `when` formats times, and `remedies` say what the reader can do. Text from
 * other hosts is quoted unchanged, so callers must make it safe to print.
 */

import { replyText } from '#mail/deliver/outcome.ts';
import type { ReceiverGroup } from '#mail/deliver/receivers.ts';
import type { AttemptRecord, DeliveryRecord } from '#mail/record/rows/emails.ts';
import type { Cause } from '#operate/condition/causes.ts';
import type { Condition } from '#operate/condition/condition.ts';
import { reasonToWait, type When } from '#operate/condition/condition-words.ts';
import { capital } from '#platform/base/capital.ts';
import { domainOf } from '#platform/values/address.ts';
import type { DeliveryStatus, Fault } from '#platform/values/glossary.ts';
import { isTestMail } from '#platform/values/test-route.ts';
import { authenticationAdvice } from './authentication-advice.ts';
import { blocklistAdvice } from './blocklist-advice.ts';

export interface WhyInput {
  delivery: DeliveryRecord;
  /** The latest attempt; null if there was none. */
  last: AttemptRecord | null;
  /** Why nothing was tried at its end; null if something was, or if that is not kept any more. */
  withheld: string | null;
  /** The action that led to the status (held or canceled), the operator's, the sender's or a rule's; null if there was none. */
  action: { at: number; reason: string; bySender?: boolean; pauseId?: string | null } | null;
  /** The state of its destination. */
  condition: Condition;
  /** The receivers that our addresses are new to, if today's allowance for them is used up. */
  newTo?: ReceiverGroup | null;
  now: number;
  emailId: string;
  orgId: string;
  /** The sender's address. */
  from: string;
}

/** The actions that the reader can take, each a sentence or a part of one. */
export interface Remedies {
  /** Follows "until it is released". */
  release(input: WhyInput): string;
  /** A sentence: where to find the bounce message. */
  report(input: WhyInput): string;
  /** A sentence: how to remove the address from the suppression list. */
  unsuppress(input: WhyInput): string;
  /** A sentence: how to get credits. */
  grant(input: WhyInput): string;
  /** A sentence: how to get a source address for the organization's IP pool. */
  source(input: WhyInput): string;
  /** Follows "check the domain". */
  verify: string;
  /** Follows the name of a DNS record of the domain: how to check it. */
  examine(domain: string): string;
  /** A sentence: how to see whether this server is on blocklists. */
  doctor: string;
}

type Explain = (input: WhyInput, when: When, remedies: Remedies) => string;

export const why: Explain = (input, when, remedies) => {
  const note = isTestMail(input.delivery) ? 'This is test mail, which is sent to nobody. ' : '';
  return note + sentences[input.delivery.status](input, when, remedies);
};

const sentences: Record<DeliveryStatus, Explain> = {
  scheduled({ delivery }, when) {
    const at = delivery.nextAttemptAt ?? delivery.expiresAt;
    return `It is scheduled for ${when(at)}, and waits for that time. It expires ${when(delivery.expiresAt)}.`;
  },
  queued(input, when, remedies) {
    return `It has not been tried yet. ${nextStep(input, when, remedies)}`;
  },
  sending(input) {
    return `It is being sent now, attempt ${input.delivery.attempts + 1}.${resultBefore(input)}`;
  },
  deferred(input, when, remedies) {
    return `${lastResult(input)} That is not final${remoteNote(input)}.${duplicateNote(input)}${blocklistNote(input, remedies)} ${nextStep(input, when, remedies)}`;
  },
  held(input, when, { release }) {
    const by = input.action?.pauseId ? 'a rule' : 'the operator';
    return `It has been held by ${by}${actionNote(input, when, 'since')} until it is released${release(input)}.${resultBefore(input)}`;
  },
  canceled(input, when) {
    const by = input.action?.bySender ? 'sender' : 'operator';
    return `It was canceled by the ${by}${actionNote(input, when, 'at')}; nothing more is sent.${resultBefore(input)}`;
  },
  delivered(input, when) {
    const at = input.delivery.deliveredAt === null ? '' : ` ${when(input.delivery.deliveredAt)}`;
    const after = isTestMail(input.delivery)
      ? 'It is in the test inbox of the dashboard.'
      : 'That host is now responsible for the message.';
    return `Delivered${at}: ${lastResult(input)} ${after}`;
  },
  bounced(input, when, remedies) {
    const { bounce, deliveredAt } = input.delivery;
    const kind = bounce ? `a ${bounce.type} bounce (${bounce.category})` : 'a bounce';
    if (bounce?.category === 'withheld') {
      return `It was not sent: ${bounce.diagnostic}. That is final, ${kind}.${resultBefore(input)}`;
    }
    if (input.last?.verdict.outcome === 'bounced' || !bounce) {
      return `${lastResult(input)} That is final, ${kind}: ${advice(input, remedies)}`;
    }
    const taken = deliveredAt === null ? 'It may have been accepted' : `It was accepted ${when(deliveredAt)}`;
    return `${taken}, and returned as a bounce message ${when(input.delivery.updatedAt)}: "${bounce.diagnostic}". That is final, ${kind}: ${advice(input, remedies)} ${remedies.report(input)}`.trimEnd();
  },
  complained: (input) =>
    `It was delivered, and the recipient complained about it as spam; do not send to this address again.${resultBefore(input)}`,
  expired(input, when) {
    const { attempts, expiresAt, hasDeadline, updatedAt } = input.delivery;
    const limit = hasDeadline
      ? 'at the deadline that the sender set with expiresAfter'
      : 'at its maximum age';
    const tried = attempts === 1 ? 'one attempt' : `${attempts} attempts`;
    const after = attempts === 0 ? 'without an attempt' : `after ${tried}`;
    const isEarly = hasDeadline && updatedAt < expiresAt;
    const early = isEarly ? '; the time that was left was too short for another attempt' : '';
    const ended = `It expired ${after}, ${limit} (${when(expiresAt)})${early}.`;
    if (input.withheld === null && input.last)
      return `${ended} ${lastResult(input)}${duplicateNote(input)} Nothing more is sent.`;
    const cause =
      input.withheld === null ? '' : ` It was not tried${attempts === 0 ? '' : ' then'}: ${input.withheld}.`;
    return `${ended}${cause}${resultBefore(input)}${duplicateNote(input)} Nothing more is sent.`;
  },
  suppressed: (input, _, { unsuppress }) =>
    `It was not sent: the address is on the suppression list. ${unsuppress(input)}`,
  insufficient_credit: (input, _, { grant }) =>
    `It was not sent: the organization had no credits left. ${grant(input)}`,
};

/** The next step of mail that waits. */
function nextStep(input: WhyInput, when: When, remedies: Remedies): string {
  const { delivery, condition, now } = input;
  const expires = `It expires ${when(delivery.expiresAt)}.`;
  const { nextAttemptAt } = delivery;
  if (nextAttemptAt === null) return expires;
  const remedy = condition.cause === 'no_source' ? ` ${remedies.source(input)}` : '';
  const reason = reasonToWait(condition, when) + remedy;
  if (nextAttemptAt <= now) return `${reason} ${expires}`;
  // The last reply has been quoted; the sentence says more if the mail waits for more than its next attempt.
  const isShut = condition.order !== null || condition.blockedUntil !== null || shutting.has(condition.cause);
  const shut = isShut ? ` ${reason}` : newAddress(input);
  return `The next attempt is due ${when(nextAttemptAt)}; it expires ${when(delivery.expiresAt)}.${shut}`;
}

function newAddress({ newTo }: WhyInput): string {
  if (!newTo) return '';
  const whom = newTo === 'others' ? 'its receiver' : newTo;
  return ` An address of this server is new to ${whom} and has used its allowance of today; mail over it waits.`;
}

const shutting = new Set<Cause>(['no_way_out', 'no_source', 'greylisting', 'throttled', 'paused']);

function actionNote({ action }: WhyInput, when: When, word: 'since' | 'at'): string {
  return action === null ? '' : ` ${word} ${when(action.at)} ("${action.reason}")`;
}

const ownTroubles = new Set<Cause>(['no_way_out', 'no_route', 'resolver_failing']);

function remoteNote({ last, condition }: WhyInput): string {
  // A host that refuses our address, our network or our rate does as it should.
  const isOurs = last?.verdict.fault === 'sender' || ownTroubles.has(condition.cause);
  return last?.verdict.origin === 'remote' && !isOurs ? ': the failure is on the remote side' : '';
}

/** The remote reply in quotation marks, or the failure if there was no reply. */
function lastResult({ last }: WhyInput): string {
  if (!last) return 'No attempt is recorded.';
  const host = last.mx ? `${last.mx.host} [${last.mx.address}]` : null;
  if (last.reply) return `${host ?? 'The host'} said "${replyText(last.reply)}" at attempt ${last.number}.`;
  const { origin, diagnostic } = last.verdict;
  if (origin === 'local') return `This server itself deferred it at attempt ${last.number}: ${diagnostic}.`;
  return `Attempt ${last.number}${host ? ` at ${host}` : ''} failed: ${diagnostic}.`;
}

function resultBefore(input: WhyInput): string {
  return input.last ? ` Before: ${lastResult(input)}` : '';
}

function duplicateNote({ last }: WhyInput): string {
  return last?.verdict.possibleDuplicate
    ? ' The connection ended after the whole message had been sent, so it may have arrived nevertheless.'
    : '';
}

const advices: Record<Fault, (remedies: Remedies) => string> = {
  recipient: () => 'the address does not accept this mail; correct the address, or stop sending to it.',
  sender: ({ verify }) => `the host does not trust the sender; check the domain ${verify}.`,
  content: () => 'the host rejected the content of this message; other messages may be accepted.',
  infrastructure: () => 'the host does not accept mail like this; its reply says what it wants.',
};

function advice(input: WhyInput, remedies: Remedies): string {
  const { last, delivery } = input;
  const isLast = last?.verdict.outcome === 'bounced' || !delivery.bounce;
  const cause = isLast ? last?.verdict : delivery.bounce;
  if (cause?.category === 'blocked')
    return blocklistAdvice(refusalOf(input, cause.diagnostic), remedies.doctor);
  if (cause?.category === 'auth') {
    const { text, senderDomain } = refusalOf(input, cause.diagnostic);
    return authenticationAdvice(text, senderDomain, remedies.examine(senderDomain));
  }
  if (cause?.category === 'mailbox_full')
    return 'the mailbox is full, so the address exists; send again later, or reach the recipient another way.';
  return cause?.fault ? advices[cause.fault](remedies) : 'nothing more is sent.';
}

/** Mail deferred because of a blocklist keeps waiting until someone acts. */
function blocklistNote(input: WhyInput, { doctor }: Remedies): string {
  const { last } = input;
  if (last?.verdict.category !== 'blocked') return '';
  const text = blocklistAdvice(refusalOf(input, last.verdict.diagnostic), doctor);
  return ` ${capital(text)}`;
}

function refusalOf({ last, from }: WhyInput, text: string) {
  return { text, host: last?.mx?.address ?? null, senderDomain: domainOf(from) ?? from };
}
