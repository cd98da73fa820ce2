/**
 * Parses SMTP replies (RFC 5321 section 4.2) with their enhanced status codes (RFC 3463, RFC 2034).
 *
 * Replies are stored, logged and shown on terminals, so control characters are replaced and very long texts are cut.
 */
import type { Reply } from '../glossary.ts';

const line = /^(?<code>[2-5]\d\d)(?:[ -](?:(?<enhanced>[245]\.\d{1,3}\.\d{1,3})(?:\s+|$))?(?<text>.*))?$/s;

const longestText = 4000;

/**
 * Null if the text is not an SMTP reply. The lines of a reply are joined by spaces. If their codes differ, it is not a
 * reply (RFC 5321 section 4.2.1), because it is unclear which one counts.
 */
export function parseReply(raw: string): Reply | null {
  const lines = printableReply(raw)
    .replace(/\n$/, '')
    .split('\n')
    .map((one) => line.exec(one)?.groups);
  const first = lines[0];
  if (!first || lines.some((groups) => groups?.code !== first.code)) return null;
  return {
    code: Number(first.code),
    enhanced: first.enhanced ?? null,
    text: lines
      .map((groups) => groups?.text?.trim() ?? '')
      .filter((text) => text !== '')
      .join(' ')
      .slice(0, longestText),
  };
}

/** Safe to store and show: line ends are \n (some hosts write CR CR LF), other control characters are replaced. */
export function printableReply(text: string): string {
  if (!/[^\n\x20-\x7e]/.test(text)) return text;
  return text
    .toWellFormed()
    .replaceAll('\r\r\n', '\n')
    .replaceAll('\r\n', '\n')
    .replace(/\r$/, '')
    .replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, '\ufffd');
}
