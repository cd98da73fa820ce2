/** SMTP replies as text, taken apart: RFC 5321 section 4.2, enhanced status codes of RFC 3463 and RFC 2034. */
import type { Reply } from '../nouns.ts';

const line = /^(?<code>[2-5]\d\d)(?:[ -](?:(?<enhanced>[245]\.\d{1,3}\.\d{1,3})(?:\s+|$))?(?<text>.*))?$/s;

/** Null where the text is not an SMTP reply. The lines of a long reply are joined by spaces. */
export function parseReply(raw: string): Reply | null {
  const lines = raw.split(/\r?\n/).map((one) => line.exec(one)?.groups);
  const first = lines[0];
  if (!first) return null;
  return {
    code: Number(first.code),
    enhanced: first.enhanced ?? null,
    text: lines
      .map((groups) => groups?.text?.trim() ?? '')
      .filter((text) => text !== '')
      .join(' '),
  };
}
