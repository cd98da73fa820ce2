/**
 * The progress of one delivery as steps: accepted, connected, encrypted, delivered. A pure function of what is stored: an
 * attempt is stored when it ends, so the steps of a running attempt are still ahead.
 */

import { replyText } from '#mail/deliver/outcome.ts';
import type { AttemptRecord, DeliveryRecord } from '#mail/record/rows/emails.ts';
import { tlsWords } from '#mail/record/tls-words.ts';
import { dueIn, relative, span } from '#platform/base/span.ts';
import { isTestMail } from '#platform/values/test-route.ts';

export interface JourneyStep {
  name: string;
  /** `doubt`: done, but not as it should be, such as without TLS. */
  state: 'done' | 'doubt' | 'now' | 'failed' | 'ahead';
  detail: string;
  /** Shown beside the detail. */
  at?: number;
}

interface JourneyInput {
  delivery: DeliveryRecord;
  last: AttemptRecord | null;
  createdAt: number;
  now: number;
}

export function journeyOf(input: JourneyInput): JourneyStep[] {
  const { status } = input.delivery;
  const accepted: JourneyStep = { name: 'Accepted', state: 'done', detail: '', at: input.createdAt };
  if (status === 'suppressed')
    return [accepted, { name: 'Not sent', state: 'failed', detail: 'on the suppression list' }];
  if (status === 'insufficient_credit')
    return [accepted, { name: 'Not sent', state: 'failed', detail: 'no credits were left' }];
  if (status === 'scheduled') return [accepted, waiting(input), ahead('Connected'), ahead('Delivered')];
  if (isTestMail(input.delivery)) return [accepted, simulated(input), outcome(input)];
  return [accepted, connected(input), encrypted(input), outcome(input)];
}

const ahead = (name: string): JourneyStep => ({ name, state: 'ahead', detail: '' });

function waiting({ delivery: { nextAttemptAt }, now }: JourneyInput): JourneyStep {
  return {
    name: 'Scheduled',
    state: 'now',
    detail: nextAttemptAt === null ? '' : relative(nextAttemptAt, now),
  };
}

function connected({ delivery, last }: JourneyInput): JourneyStep {
  if (delivery.status === 'sending')
    return { name: 'Connecting', state: 'now', detail: `attempt ${delivery.attempts + 1}` };
  const isFinal = delivery.status === 'expired' || delivery.status === 'bounced';
  if (isFinal && delivery.attempts === 0)
    return { name: 'Not tried', state: 'doubt', detail: 'no attempt was made' };
  if (!last) {
    const isWaiting = delivery.status === 'queued';
    return { name: isWaiting ? 'Queued' : 'Connected', state: isWaiting ? 'now' : 'ahead', detail: '' };
  }
  const { mx } = last;
  if (mx) return { name: 'Connected', state: 'done', detail: `${mx.host} [${mx.address}]` };
  return {
    name: 'Not connected',
    state: last.verdict.origin === 'local' ? 'doubt' : 'failed',
    detail: last.verdict.diagnostic,
  };
}

function simulated({ last }: JourneyInput): JourneyStep {
  const state = last ? 'done' : 'ahead';
  return { name: 'Test mail', state, detail: 'a simulated host answers' };
}

function encrypted({ delivery, last }: JourneyInput): JourneyStep {
  if (delivery.status === 'sending' || !last?.mx) return { name: 'Encrypted', state: 'ahead', detail: '' };
  const { tls } = last;
  if (!tls) return { name: 'Not encrypted', state: 'doubt', detail: 'TLS was not offered or failed' };
  return {
    name: 'Encrypted',
    state: 'done',
    detail: tlsWords(tls),
  };
}

function outcome({ delivery, last, now }: JourneyInput): JourneyStep {
  const reply = last?.reply ? replyText(last.reply) : (last?.verdict.diagnostic ?? '');
  switch (delivery.status) {
    case 'delivered': {
      const took = last ? ` in ${span(last.endedAt - last.startedAt)}` : '';
      return {
        name: 'Delivered',
        state: 'done',
        detail: reply === '' ? took.trim() : `${reply}${took && `, ${took.trim()}`}`,
      };
    }
    case 'deferred': {
      const at = delivery.nextAttemptAt;
      const next = at === null ? '' : `next attempt ${dueIn(at - now)}`;
      return { name: 'Waiting to retry', state: 'now', detail: next };
    }
    case 'bounced':
      return { name: 'Bounced', state: 'failed', detail: delivery.bounce?.diagnostic ?? reply };
    case 'expired':
      return { name: 'Expired', state: 'failed', detail: reply };
    case 'complained':
      return { name: 'Marked as spam', state: 'failed', detail: 'delivered, then reported as spam' };
    case 'held':
      return { name: 'Held', state: 'doubt', detail: 'until it is released' };
    case 'canceled':
      return { name: 'Canceled', state: 'failed', detail: 'no further attempts' };
    default:
      return { name: 'Delivered', state: 'ahead', detail: '' };
  }
}
