/**
 * Why a recipient's mail stands where it stands, in a sentence or two: what was said, by whom, and what comes next.
 * A pure function of what is stored; `when` writes a time for whoever reads it.
 */
import type { AttemptRecord, DeliveryRecord } from '../db/emails.ts';
import type { DeliveryStatus, Fault } from '../nouns.ts';
import { replyText } from '../outcome.ts';
import { clean } from './output.ts';

export interface Story {
  delivery: DeliveryRecord;
  /** The latest attempt, where there was one. */
  last: AttemptRecord | null;
  orgId: string;
}

type When = (time: number) => string;

export function why(story: Story, when: When): string {
  return clean(sentences[story.delivery.status](story, when));
}

const sentences: Record<DeliveryStatus, (story: Story, when: When) => string> = {
  queued({ delivery }, when) {
    return `It waits for its first attempt, due ${due(delivery, when)}; where that is long past, see that the server runs.`;
  },
  sending(story) {
    return `It is being sent now, attempt ${story.delivery.attempts + 1}.${before(story)}`;
  },
  deferred(story, when) {
    const { delivery } = story;
    const next = `The next attempt is due ${due(delivery, when)}; it expires ${when(delivery.expiresAt)}.`;
    return `${said(story)} That is not final.${doubt(story)} ${next}`;
  },
  held: (story) => `It is held by the operator until it is released.${before(story)}`,
  canceled: (story) => `It was canceled by the operator; nothing more is sent.${before(story)}`,
  delivered(story, when) {
    const at = story.delivery.deliveredAt === null ? '' : ` ${when(story.delivery.deliveredAt)}`;
    return `Delivered${at}: ${said(story)} From here on the message is in that host's hands.`;
  },
  bounced(story) {
    const { bounce } = story.delivery;
    const kind = bounce ? `a ${bounce.type} bounce (${bounce.category})` : 'a bounce';
    return `${said(story)} That is final, ${kind}: ${advice(story)}`;
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

function due({ nextAttemptAt }: DeliveryRecord, when: When): string {
  return nextAttemptAt === null ? 'at a time not set' : when(nextAttemptAt);
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

function advice({ last }: Story): string {
  return last?.verdict.fault ? advices[last.verdict.fault] : 'nothing more is sent.';
}
