/**
 * Why a recipient's mail stands where it stands, in a sentence or two: what was said, by whom, and what comes next.
 * A pure function of what is stored; `when` writes a time for whoever reads it.
 */
import type { AttemptRecord, DeliveryRecord } from '../db/emails.ts';
import type { DeliveryStatus, Fault } from '../nouns.ts';
import { replyText } from '../outcome.ts';
import { clean } from './output.ts';
import { type Condition, type Place, reasonToWait, type When } from './standing.ts';

export interface Story {
  delivery: DeliveryRecord;
  /** The latest attempt, where there was one. */
  last: AttemptRecord | null;
  /** What the operator has ordered, where the state is by order. */
  order: { at: number; reason: string } | null;
  /** Where it is to go, and how that stands. */
  place: Place;
  condition: Condition;
  now: number;
  emailId: string;
  orgId: string;
}

export function why(story: Story, when: When): string {
  return clean(sentences[story.delivery.status](story, when));
}

const sentences: Record<DeliveryStatus, (story: Story, when: When) => string> = {
  queued(story, when) {
    return `It has not been tried yet. ${next(story, when)}`;
  },
  sending(story) {
    return `It is being sent now, attempt ${story.delivery.attempts + 1}.${before(story)}`;
  },
  deferred(story, when) {
    return `${said(story)} That is not final${remotely(story)}.${doubt(story)} ${next(story, when)}`;
  },
  held(story, when) {
    const release = `\`postern queue release ${story.emailId} --reason R\``;
    return `It is held by the operator${ordered(story, when, 'since')}, until it is released (${release}).${before(story)}`;
  },
  canceled(story, when) {
    return `It was canceled by the operator${ordered(story, when, 'at')}; nothing more is sent.${before(story)}`;
  },
  delivered(story, when) {
    const at = story.delivery.deliveredAt === null ? '' : ` ${when(story.delivery.deliveredAt)}`;
    return `Delivered${at}: ${said(story)} From here on the message is in that host's hands.`;
  },
  bounced(story, when) {
    const { bounce, deliveredAt } = story.delivery;
    const kind = bounce ? `a ${bounce.type} bounce (${bounce.category})` : 'a bounce';
    if (story.last?.verdict.outcome === 'bounced' || !bounce) {
      return `${said(story)} That is final, ${kind}: ${advice(story.last?.verdict.fault)}`;
    }
    const taken = deliveredAt === null ? 'It may have been taken' : `It was taken ${when(deliveredAt)}`;
    return `${taken}, and came back by mail ${when(story.delivery.updatedAt)}: "${bounce.diagnostic}". That is final, ${kind}: ${advice(bounce.fault)} \`postern inbound list --email ${story.emailId}\` has the report.`;
  },
  complained: (story) =>
    `It was delivered, and the recipient complained; do not write there again.${before(story)}`,
  expired(story, when) {
    const { attempts, expiresAt } = story.delivery;
    const tried = attempts === 1 ? 'one attempt' : `${attempts} attempts`;
    return `It was given up after ${tried}, at its maximum age (${when(expiresAt)}). ${said(story)}${doubt(story)} Nothing more is sent.`;
  },
  suppressed({ orgId, delivery }) {
    return `It was not sent: the address is on the suppression list. \`postern suppression remove ${delivery.recipient} --org ${orgId}\` takes it off for later mail.`;
  },
  insufficient_credit({ orgId }) {
    return `It was not sent: the credits had run out. \`postern credits grant ${orgId} N\` adds some for later mail.`;
  },
};

/** What comes next of mail that waits. */
function next(story: Story, when: When): string {
  const { delivery, condition, place, now } = story;
  const expires = `It expires ${when(delivery.expiresAt)}.`;
  const { nextAttemptAt } = delivery;
  if (nextAttemptAt === null) return expires;
  if (nextAttemptAt <= now) return `${reasonToWait(condition, place, when)} ${expires}`;
  const isShut = condition.is === 'suspended' || condition.is === 'circuit_open';
  const shut = isShut ? ` ${reasonToWait(condition, place, when)}` : '';
  return `The next attempt is due ${when(nextAttemptAt)}; it expires ${when(delivery.expiresAt)}.${shut}`;
}

function ordered({ order }: Story, when: When, word: 'since' | 'at'): string {
  return order === null ? '' : ` ${word} ${when(order.at)} ("${order.reason}")`;
}

/** Our own deferrals say so where they are quoted. */
function remotely({ last }: Story): string {
  return last?.verdict.origin === 'remote' ? ': the other side put it off' : '';
}

/** The remote reply in quotation marks where there was one, else what went wrong. */
function said({ last }: Story): string {
  if (!last) return 'No attempt is recorded.';
  const host = last.mx ? `${last.mx.host} [${last.mx.address}]` : null;
  if (last.reply) return `${host ?? 'The host'} said "${replyText(last.reply)}" at attempt ${last.number}.`;
  const { origin, diagnostic } = last.verdict;
  if (origin === 'local') return `This server itself put it off at attempt ${last.number}: ${diagnostic}.`;
  return `Attempt ${last.number}${host ? ` at ${host}` : ''} failed: ${diagnostic}.`;
}

function before(story: Story): string {
  return story.last ? ` Before: ${said(story)}` : '';
}

function doubt({ last }: Story): string {
  return last?.verdict.possibleDuplicate
    ? ' The connection ended after the whole message had gone out, so it may have arrived all the same.'
    : '';
}

const advices: Record<Fault, string> = {
  recipient: 'the address does not take this mail; correct it, or write there no more.',
  sender: 'the host does not trust the sender; look at the domain with `postern domain verify`.',
  content: 'the host did not take this message; another one may pass.',
  infrastructure: 'the host takes no mail like this; its reply says what it wants.',
};

function advice(fault: Fault | null | undefined): string {
  return fault ? advices[fault] : 'nothing more is sent.';
}
