/**
 * How a stretch of a session ended, as a fact for outcome.ts: from the library's error, a deadline or a loss, and from
 * what the watch has seen. A refusal that was heard counts before the manner in which the line went down.
 */
import type { Ending } from '../outcome.ts';
import { parseReply } from './reply.ts';
import type { Watch } from './watch.ts';

export type LibraryError = Error & { code?: string; response?: string; reason?: string };

export type Trouble = 'timeout' | 'not-smtp' | 'interrupted';

export function troubleEnding(kind: Trouble, detail: string, watch: Watch): Ending {
  const refusal = watch.refusal();
  if (refusal) return { kind: 'refused', ...refusal };
  if (kind === 'timeout' && watch.isSecuring()) return { kind: 'tls-failed', detail };
  return { kind, phase: watch.phase(), detail, afterDot: watch.afterDot() };
}

export function endingOf(error: LibraryError, watch: Watch): Ending {
  const refusal = watch.refusal();
  if (refusal) return { kind: 'refused', ...refusal };
  const reply = error.response ? parseReply(error.response) : null;
  if (reply && reply.code >= 400) return { kind: 'refused', phase: watch.answered(), reply };
  const reason = error.reason ?? error.message;
  if (watch.isSecuring()) return { kind: 'tls-failed', detail: `TLS handshake failed: ${reason}` };
  if (error.response || error.code === 'EPROTOCOL') return notSmtp(error.response ?? error.message, watch);
  return lostEnding(watch, reason);
}

function notSmtp(said: string, watch: Watch): Ending {
  const detail = `not an SMTP reply: ${JSON.stringify(said.slice(0, 200))}`;
  return { kind: 'not-smtp', phase: watch.phase(), afterDot: watch.afterDot(), detail };
}

export function lostEnding(watch: Watch, why: string): Ending {
  const refusal = watch.refusal();
  if (refusal) return { kind: 'refused', ...refusal };
  const phase = watch.phase();
  const where = watch.afterDot() ? 'after the message, before its reply' : `waiting for ${phase}`;
  if (watch.isSecuring()) return { kind: 'tls-failed', detail: `TLS handshake failed: ${why}` };
  return { kind: 'lost', phase, afterDot: watch.afterDot(), detail: `connection lost ${where}: ${why}` };
}
