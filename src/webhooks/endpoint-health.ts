/**
 * What tries make of an endpoint: since when it fails, until when it wants to be left alone, and whether it is to be
 * disabled: when it says that it is gone, or when nothing has got through for as long as all tries of a message take.
 * One message that it never takes does not disable an endpoint that takes others.
 */
import { longestFailing, type WebhookVerdict } from './classify-response.ts';

export interface EndpointHealth {
  failingSince: number | null;
  pausedUntil: number | null;
  /** Why it is to be disabled. */
  disable: string | null;
}

export interface Tried {
  startedAt: number;
  endedAt: number;
  verdict: WebhookVerdict;
  /** In a sentence, where it failed. */
  error: string | null;
}

/** `tries`: in the order in which they ended. */
export function endpointHealthAfter(
  before: Omit<EndpointHealth, 'disable'>,
  tries: readonly Tried[],
): EndpointHealth {
  const standing: EndpointHealth = { ...before, disable: null };
  for (const { startedAt, endedAt, verdict, error } of tries) {
    if (verdict.kind === 'delivered') {
      standing.failingSince = null;
      standing.pausedUntil = null;
      continue;
    }
    standing.failingSince ??= startedAt;
    if (verdict.kind === 'gone') standing.disable = 'it answered HTTP 410: gone';
    else {
      standing.pausedUntil = later(standing.pausedUntil, verdict.pausedUntil);
      if (endedAt - standing.failingSince >= longestFailing) {
        standing.disable = `nothing got through for three days; the last try: ${error}`;
      }
    }
  }
  return standing;
}

function later(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.max(a, b);
}
