/** How a conversation that cannot go on says so. */
import type { Ending, Phase } from '../outcome.ts';

export class Broken extends Error {
  readonly ending: Ending;

  constructor(ending: Ending) {
    super(ending.kind);
    this.ending = ending;
  }
}

export function endingOf(error: unknown): Ending {
  if (error instanceof Broken) return error.ending;
  throw error;
}

/** What was being waited for, and whether the whole message was out. */
export interface Where {
  phase: Phase;
  afterDot: boolean;
}

export function lostEnding(where: Where, why: string): Ending {
  const when = where.afterDot ? 'after the message, before its reply' : `waiting for ${where.phase}`;
  return { kind: 'lost', ...where, detail: `connection lost ${when}: ${why}` };
}

export function handshakeEnding(why: string): Ending {
  return { kind: 'tls-failed', detail: `TLS handshake failed: ${why}` };
}
