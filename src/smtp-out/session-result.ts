/** The error that ends a conversation, and the results that it carries. */
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

/** The phase whose reply was awaited, and whether the whole message had been sent. */
export interface Position {
  phase: Phase;
  afterDot: boolean;
}

export function lostSessionResult(position: Position, why: string): SessionResult {
  const when = position.afterDot ? 'after the message, before its reply' : `waiting for ${position.phase}`;
  return { kind: 'lost', ...position, detail: `connection lost ${when}: ${why}` };
}

export function handshakeResult(why: string): SessionResult {
  return { kind: 'tls-failed', detail: `TLS handshake failed: ${why}` };
}
