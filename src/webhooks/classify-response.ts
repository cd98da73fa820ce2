/**
 * What comes of a try: a pure function of the answer. 2xx is done; 410 means that the endpoint wants no more; all else
 * is tried again, and a redirect is no better than the rest. `Retry-After` may lengthen a wait, never shorten it, or a
 * receiver that always says "in a second" would use up its tries in ten.
 *
 * The waits are not spread: an endpoint that fails is asked by one request at a time (posting-slots.ts), so that what was put
 * off together does not come back together.
 */
import ms from 'ms';

export interface WebhookResponse {
  status: number;
  retryAfter: string | null;
  /** The beginning of its body. */
  text: string;
}

/** A try as it is kept. */
export interface WebhookAttempt {
  startedAt: number;
  endedAt: number;
  /** In milliseconds, as a stopwatch has it. */
  duration: number;
  url: string;
  answer: WebhookResponse | null;
  /** In a sentence, where it failed. */
  error: string | null;
}

export type WebhookVerdict =
  | { kind: 'delivered' }
  /** `pausedUntil`: the endpoint asked to be left alone. */
  | { kind: 'again'; dueAt: number; pausedUntil: number | null }
  | { kind: 'failed'; pausedUntil: number | null }
  | { kind: 'gone' };

/** Before the second try, the third, and so on (docs/design.md section 3). */
export const retryDelays = ['5s', '5m', '30m', '2h', '5h', '10h', '14h', '20h', '24h'].map((each) =>
  ms(each as ms.StringValue),
);

/** What all tries of a message take, at least. An endpoint that takes nothing for so long is disabled. */
export const maxFailingMs = retryDelays.reduce((sum, each) => sum + each, 0);

const maxPauseMs = retryDelays.at(-1)!;

/** `before`: tries made before this one. */
export function verdictOf(
  { answer }: Pick<WebhookAttempt, 'answer'>,
  before: number,
  now: number,
): WebhookVerdict {
  const status = answer?.status ?? 0;
  if (status >= 200 && status < 300) return { kind: 'delivered' };
  if (status === 410) return { kind: 'gone' };
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

/** Why a status that was answered is a failure; null where it is none. */
export function failureOf(status: number): string | null {
  if (status >= 200 && status < 300) return null;
  if (status >= 300 && status < 400) return `HTTP ${status}: redirects are not followed`;
  return `HTTP ${status}`;
}
