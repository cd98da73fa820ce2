/**
 * The reply of a host when an address bounced, for the lists of bounces of other services. `text` is the whole line, as it is
 * shown; the codes are those of the reply that it quotes, or 550.
 */

import { readDiagnostic } from '#platform/values/diagnostic.ts';
import type { Reply } from '#platform/values/glossary.ts';

/** `reply`: of the session that ended with the bounce, if there was one. */
export function replyIn(text: string, reply: Reply | null = null): Reply {
  const { code, enhanced } = reply ?? readDiagnostic(text, {}).reply;
  return { code, enhanced, text };
}
