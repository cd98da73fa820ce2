/** How a conversation that cannot go on says so. */
import type { Phase, SessionResult } from '../outcome.ts';

export class Broken extends Error {
  readonly result: SessionResult;

  constructor(result: SessionResult) {
    super(result.kind);
    this.result = result;
  }
}

export function sessionResultOf(error: unknown): SessionResult {
  if (error instanceof Broken) return error.result;
  throw error;
}

/** What was being waited for, and whether the whole message was out. */
export interface Where {
  phase: Phase;
  afterDot: boolean;
}

export function lostSessionResult(where: Where, why: string): SessionResult {
  const when = where.afterDot ? 'after the message, before its reply' : `waiting for ${where.phase}`;
  return { kind: 'lost', ...where, detail: `connection lost ${when}: ${why}` };
}

export function handshakeResult(why: string): SessionResult {
  return { kind: 'tls-failed', detail: `TLS handshake failed: ${why}` };
}
