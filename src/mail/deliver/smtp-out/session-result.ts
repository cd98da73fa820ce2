/** The error that ends a conversation, and the results that it carries. */
import type { SessionResult } from '#mail/deliver/outcome.ts';
import type { Phase } from '#platform/values/glossary.ts';

type TlsFailed = Extract<SessionResult, { kind: 'tls-failed' }>;

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

/** The steps to TLS: the reply to STARTTLS, the handshake, and the reply to the first command over TLS. */
export type SecuringStep = 'starttls' | 'handshake' | 'ehlo';

const failedSteps: Record<SecuringStep, string> = {
  starttls: 'no valid reply to STARTTLS',
  handshake: 'TLS handshake failed',
  ehlo: 'no valid reply to the first command over TLS',
};

/** lost: or refused, or timed out; tls: an error of the protocol itself; nonsense: bytes that are no SMTP, or no TLS. */
export type HandshakeFailure = 'lost' | 'tls' | 'nonsense';

export function tlsFailed(step: SecuringStep, failure: HandshakeFailure, why: string): TlsFailed {
  return {
    kind: 'tls-failed',
    isTransient: failure === 'lost',
    mayBeOutdated: step === 'handshake' && failure !== 'nonsense',
    detail: `${failedSteps[step]}: ${why}`,
  };
}
