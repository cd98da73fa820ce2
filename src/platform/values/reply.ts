/**
 * Parses SMTP replies (RFC 5321 section 4.2) with their enhanced status codes (RFC 3463, RFC 2034).
 *
 * Replies are stored, logged and shown on terminals, so control characters are replaced and very long texts are cut.
 */
import type { Reply } from './glossary.ts';

/** Its groups are the code, the enhanced code and the text. */
const line = /^([2-5]\d\d)(?:[ \t-](?:([245]\.\d{1,3}\.\d{1,3})(?:\s|$))?(.*))?$/s;

const longestText = 4000;

/**
 * Null if the text is not an SMTP reply. RFC 5321 section 4.2.1 wants the same code on each line and the end of the reply at
 * the last one. Where the codes differ, the last one counts, in each phase: a filter has written its own lines before or after
 * the server's, and the last line is the only one that ends the reply. Each such reply would be the same at the next attempt,
 * so waiting would not tell more. All text is kept, because the reason may be on any line, also on one without a code.
 */
export function parseReply(raw: string): Reply | null {
  const lines = printableReply(raw).replace(/\n$/, '').split('\n');
  const parsed = lines.map((one) => line.exec(one));
  if (!parsed[0]) return null;
  const [, code] = parsed.findLast((one) => one !== null)!;
  const texts: string[] = [];
  let enhanced: string | null = null;
  for (const [index, one] of parsed.entries()) {
    if (one?.[1] === code) enhanced = one![2] ?? enhanced;
    const text = (one ? (one[3] ?? '') : lines[index]!).trim();
    if (text !== '') texts.push(text);
  }
  return { code: Number(code), enhanced, text: texts.join(' ').slice(0, longestText) };
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
