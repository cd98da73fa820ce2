/**
 * An endpoint's health after attempts: since when it fails, until when it asked for a pause, and whether to disable it. It is
 * disabled if it answers 410, or if nothing was accepted for as long as all attempts of one message take. A single message that
 * it never accepts does not disable an endpoint that accepts others.
 */
import { maxFailingMs, type WebhookVerdict } from './classify-response.ts';

/** The reason stored when the owner disables an endpoint. */
export const disabledByOwner = 'disabled by its owner';

export interface EndpointHealth {
  failingSince: number | null;
  pausedUntil: number | null;
  /** The reason to disable it; null if there is none. */
  disable: string | null;
}

export interface EndpointAttempt {
  startedAt: number;
  endedAt: number;
  verdict: WebhookVerdict;
  /** The failure, in a sentence; null if there was none. */
  error: string | null;
}

/** `attempts`: in the order in which they ended. */
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
      health.pausedUntil = laterOf(health.pausedUntil, verdict.pausedUntil);
      if (endedAt - health.failingSince >= maxFailingMs) {
        health.disable = `nothing was accepted for three days; the last attempt: ${error}`;
      }
    }
  }
  return health;
}

function laterOf(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.max(a, b);
}
