/** One attempt: builds the body of an event, signs it and posts it. Rejects only if it is stopped. */

import type { EventRecord } from '#mail/record/rows/read-events.ts';
import { formatOf } from '#mail/webhooks/formats/all-formats.ts';
import type { Clock } from '#platform/base/clock.ts';
import { failureOf, type WebhookAttempt, type WebhookResponse } from './classify-response.ts';
import type { Post } from './guarded-post.ts';
import type { WebhookFormatName } from './subscribed-types.ts';

interface AttemptRequest {
  url: string;
  format: WebhookFormatName;
  /** Sealed. */
  secrets: readonly string[];
  /** Null if the event has been deleted. */
  event: EventRecord | null;
}

export interface AttemptParts {
  post: Post;
  openSecret(sealed: string): string;
  clock: Clock;
}

const commonHeaders = { 'content-type': 'application/json', 'user-agent': 'Postern-Webhooks' };

/** The post of an event, signed at the given time; `secrets`: opened. */
export function signedPost(
  event: EventRecord,
  { format, secrets, now }: { format: WebhookFormatName; secrets: readonly string[]; now: number },
): { headers: Record<string, string>; body: string } {
  const { headers, body } = formatOf(format).write(event, { secrets, timestamp: Math.floor(now / 1000) });
  return { headers: { ...commonHeaders, ...headers }, body };
}

export type AttemptWebhook = (message: AttemptRequest, stopped: AbortSignal) => Promise<WebhookAttempt>;

export function createAttemptWebhook({ post, openSecret, clock }: AttemptParts): AttemptWebhook {
  return async ({ url, format, secrets, event }, stopped) => {
    const startedAt = clock.now();
    const begun = performance.now();
    const attemptOf = (answer: WebhookResponse | null, error: string | null): WebhookAttempt => {
      const duration = Math.round(performance.now() - begun);
      return { startedAt, endedAt: clock.now(), duration, url, answer, error };
    };
    if (event === null) return attemptOf(null, 'the event has been deleted because of its age');
    try {
      const { headers, body } = signedPost(event, {
        format,
        secrets: secrets.map(openSecret),
        now: startedAt,
      });
      const answer = await post({ url, headers, body }, stopped);
      return attemptOf(answer, failureOf(answer.status));
    } catch (error) {
      if (stopped.aborted) throw error;
      return attemptOf(null, (error as Error).message);
    }
  };
}
