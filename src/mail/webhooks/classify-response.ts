/**
 * The verdict on an attempt: a pure function of the response. 2xx is delivered; 410 disables the
 * endpoint; anything else, redirects included, is retried, except for an answer by which the format has an event refused.
 * `Retry-After` may lengthen a delay but never shorten it: a receiver that always asks for one second would otherwise use up all
 * attempts in ten seconds.
 *
 * The delays have no jitter: a failing endpoint gets one request at a time (posting-slots.ts), so deferred messages do not all
 * return at once.
 */
import ms from 'ms';
import type { WebhookFormatName } from './subscribed-types.ts';

export interface WebhookResponse {
  status: number;
  retryAfter: string | null;
  /** The beginning of its body. */
  text: string;
}

/** An attempt as it is stored. */
export interface WebhookAttempt {
  startedAt: number;
  endedAt: number;
  /** In milliseconds, by a monotonic clock. */
  duration: number;
  url: string;
  answer: WebhookResponse | null;
  /** The failure, in a sentence; null if there was none. */
  error: string | null;
}

export type WebhookVerdict =
  | { kind: 'delivered' }
  /** `pausedUntil`: the endpoint asked for a pause with `Retry-After`. */
  | { kind: 'again'; dueAt: number; pausedUntil: number | null }
  | { kind: 'failed'; pausedUntil: number | null }
  | { kind: 'gone' };

/** Delays before the second attempt, the third, and so on (docs/design.md section 3). */
export const retryDelays = ['5s', '5m', '30m', '2h', '5h', '10h', '14h', '20h', '24h'].map((each) =>
  ms(each as ms.StringValue),
);

/** The least time that all attempts of a message take. An endpoint that accepts nothing for this long is disabled. */
export const maxFailingMs = retryDelays.reduce((sum, each) => sum + each, 0);

const maxPauseMs = retryDelays.at(-1)!;

/**
 * By which code that was written for another service refuses an event for good:
 * https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/webhook-retries. A repeat would only be refused again, and
 * holds up the events of its email.
 */
const refusals: Partial<Record<WebhookFormatName, number>> = { mailgun: 406 };

/** `before`: number of earlier attempts. */
export function verdictOf(
  { answer }: Pick<WebhookAttempt, 'answer'>,
  before: number,
  now: number,
  format: WebhookFormatName = 'standard',
): WebhookVerdict {
  const status = answer?.status ?? 0;
  if (status >= 200 && status < 300) return { kind: 'delivered' };
  if (status === 410) return { kind: 'gone' };
  if (status === refusals[format]) return { kind: 'failed', pausedUntil: null };
  const retryAfter = retryAfterMs(answer?.retryAfter ?? null, now);
  const pausedUntil = retryAfter === null ? null : now + retryAfter;
  const wait = retryDelays[before];
  if (wait === undefined) return { kind: 'failed', pausedUntil };
  return { kind: 'again', dueAt: now + Math.max(wait, retryAfter ?? 0), pausedUntil };
}

/** RFC 9110 section 10.2.3: seconds, or a date. */
function retryAfterMs(text: string | null, now: number): number | null {
  if (text === null) return null;
  const value = /^\s*\d+\s*$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now;
  return Number.isNaN(value) ? null : Math.min(Math.max(value, 0), maxPauseMs);
}

/** Why a status is a failure; null for 2xx. */
export function failureOf(status: number): string | null {
  if (status >= 200 && status < 300) return null;
  if (status >= 300 && status < 400) return `HTTP ${status}: redirects are not followed`;
  return `HTTP ${status}`;
}
