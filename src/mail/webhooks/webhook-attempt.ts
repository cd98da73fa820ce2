/** One attempt: builds the body of an event, signs it and posts it. Rejects only if it was not made, for a reason of ours. */

import type { EventRecord } from '#mail/record/rows/read-events.ts';
import type { Clock } from '#platform/base/clock.ts';
import { failureOf, type WebhookAttempt, type WebhookResponse } from './classify-response.ts';
import type { Post } from './guarded-post.ts';
import { type MakeReceivedBody, NotTried } from './received/received-bodies.ts';
import { signedPost, signedReceived } from './signed-post.ts';
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
  makeReceivedBody: MakeReceivedBody;
  openSecret(sealed: string): string;
  clock: Clock;
}

export type AttemptWebhook = (message: AttemptRequest, stopped: AbortSignal) => Promise<WebhookAttempt>;

export function createAttemptWebhook({
  post,
  makeReceivedBody,
  openSecret,
  clock,
}: AttemptParts): AttemptWebhook {
  return async ({ url, format, secrets, event }, stopped) => {
    const startedAt = clock.now();
    const begun = performance.now();
    const attemptOf = (answer: WebhookResponse | null, error: string | null): WebhookAttempt => {
      const duration = Math.round(performance.now() - begun);
      return { startedAt, endedAt: clock.now(), duration, url, answer, error };
    };
    if (event === null) return attemptOf(null, 'the event has been deleted because of its age');
    let release = () => {};
    try {
      const signAs = { format, secrets: secrets.map(openSecret), now: startedAt, url };
      const { headers, body, ...held } =
        event.type === 'email.received'
          ? await signedReceived(event, signAs, makeReceivedBody)
          : signedPost(event, signAs);
      if ('release' in held) release = held.release;
      const answer = await post({ url, headers, body }, stopped);
      return attemptOf(answer, failureOf(answer.status));
    } catch (error) {
      if (stopped.aborted || error instanceof NotTried) throw error;
      return attemptOf(null, (error as Error).message);
    } finally {
      release();
    }
  };
}
