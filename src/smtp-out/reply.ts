/**
 * Parses SMTP replies (RFC 5321 section 4.2) with their enhanced status codes (RFC 3463, RFC 2034).
 *
 * Replies are stored, logged and shown on terminals, so control characters are replaced and very long texts are cut.
 */
import type { Reply } from '../glossary.ts';

const line = /^(?<code>[2-5]\d\d)(?:[ \t-](?:(?<enhanced>[245]\.\d{1,3}\.\d{1,3})(?:\s|$))?(?<text>.*))?$/s;

const longestText = 4000;

/**
 * Null if the text is not an SMTP reply. RFC 5321 section 4.2.1 wants the same code on each line and the end of the reply at
 * the last one. Where the codes differ, the last one counts, in each phase: a filter has written its own lines before or after
 * the server's, and the last line is the only one that ends the reply. Each such reply would be the same at the next attempt,
 * so waiting would not tell more. All text is kept, because the reason may be on any line, also on one without a code.
 */
export function parseReply(raw: string): Reply | null {
  const lines = printableReply(raw).replace(/\n$/, '').split('\n');
  const parsed = lines.map((one) => line.exec(one)?.groups);
  if (!parsed[0]) return null;
  const { code } = parsed.findLast((groups) => groups !== undefined)!;
  const statuses = parsed.filter((groups) => groups?.code === code && groups?.enhanced);
  return {
    code: Number(code),
    enhanced: statuses.at(-1)?.enhanced ?? null,
    text: parsed
      .map((groups, index) => (groups ? (groups.text ?? '') : lines[index]!).trim())
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
