/**
 * What tries make of an endpoint: since when it fails, until when it wants to be left alone, and whether it is to be
 * disabled: when it says that it is gone, or when nothing has got through for as long as all tries of a message take.
 * One message that it never takes does not disable an endpoint that takes others.
 */
import { maxFailingMs, type WebhookVerdict } from './classify-response.ts';

export interface EndpointHealth {
  failingSince: number | null;
  pausedUntil: number | null;
  /** Why it is to be disabled. */
  disable: string | null;
}

export interface EndpointAttempt {
  startedAt: number;
  endedAt: number;
  verdict: WebhookVerdict;
  /** In a sentence, where it failed. */
  error: string | null;
}

/** `tries`: in the order in which they ended. */
export function endpointHealthAfter(
  before: Omit<EndpointHealth, 'disable'>,
  attempts: readonly EndpointAttempt[],
): EndpointHealth {
  const health: EndpointHealth = { ...before, disable: null };
  for (const { startedAt, endedAt, verdict, error } of attempts) {
    if (verdict.kind === 'delivered') {
      health.failingSince = null;
      health.pausedUntil = null;
      continue;
    }
    health.failingSince ??= startedAt;
    if (verdict.kind === 'gone') health.disable = 'it answered HTTP 410: gone';
    else {
      health.pausedUntil = later(health.pausedUntil, verdict.pausedUntil);
      if (endedAt - health.failingSince >= maxFailingMs) {
        health.disable = `nothing got through for three days; the last try: ${error}`;
      }
    }
  }
  return health;
}

function later(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.max(a, b);
}
