/** One attempt: builds the body of an event, signs it and posts it. Rejects only if it is stopped. */
import type { Clock } from '../base/clock.ts';
import type { EventRecord } from '../db/events/read-events.ts';
import { failureOf, type WebhookAttempt, type WebhookResponse } from './classify-response.ts';
import type { Post } from './guarded-post.ts';
import { sign } from './signature.ts';
import { bodyOf } from './webhook-body.ts';

interface AttemptRequest {
  url: string;
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

export type AttemptWebhook = (message: AttemptRequest, stopped: AbortSignal) => Promise<WebhookAttempt>;

export function createAttemptWebhook({ post, openSecret, clock }: AttemptParts): AttemptWebhook {
  return async ({ url, secrets, event }, stopped) => {
    const startedAt = clock.now();
    const begun = performance.now();
    const attemptOf = (answer: WebhookResponse | null, error: string | null): WebhookAttempt => {
      const duration = Math.round(performance.now() - begun);
      return { startedAt, endedAt: clock.now(), duration, url, answer, error };
    };
    if (event === null) return attemptOf(null, 'the event has been deleted because of its age');
    try {
      const body = bodyOf(event);
      const headers = headersOf(
        { id: event.id, timestamp: Math.floor(startedAt / 1000), body },
        secrets.map(openSecret),
      );
      const answer = await post({ url, headers, body }, stopped);
      return attemptOf(answer, failureOf(answer.status));
    } catch (error) {
      if (stopped.aborted) throw error;
      return attemptOf(null, (error as Error).message);
    }
  };
}

/** The headers of Standard Webhooks. The id is the event's id: the same on every attempt, and in the event feed. */
function headersOf(signed: Parameters<typeof sign>[1], secrets: string[]): Record<string, string> {
  return {
    'content-type': 'application/json',
    'user-agent': 'Postern-Webhooks',
    'webhook-id': signed.id,
    'webhook-timestamp': String(signed.timestamp),
    'webhook-signature': sign(secrets, signed),
  };
}
