/**
 * Makes text from outside safe to print: control characters, which could move a terminal's cursor or do worse, and
 * characters that change the direction of the text are written as visible escapes.
 */

const unsafe = /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/gu;
/** JSON.stringify itself escapes the control characters below a space. */
const unsafeInJson = /[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

export function sanitize(text: string): string {
  return text.replace(unsafe, (each) => {
    const hex = each.charCodeAt(0).toString(16);
    return hex.length > 2 ? `\\u${hex.padStart(4, '0')}` : `\\x${hex.padStart(2, '0')}`;
  });
}

/** The same for JSON text; its meaning does not change. */
export function sanitizeJson(json: string): string {
  // The mail log calls this for every batch of lines. Nearly all are ASCII, which this test finds faster than the expression.
  if (Buffer.byteLength(json) === json.length && !json.includes('\x7f')) return json;
  return json.replace(unsafeInJson, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Text as HTML, also in the value of an attribute in quotes. */
export function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;')
    .replaceAll('<', '&lt;');
}

/** Checks names, labels and reasons: any text without control characters. */
export function isOneLine(text: string, longest: number): boolean {
  return text !== '' && text.length <= longest && !/\p{Cc}/u.test(text);
}

/** Without the quotation marks. */
function bytesInJson(text: string): number {
  return Buffer.byteLength(JSON.stringify(text)) - 2;
}

/** The beginning of the text that takes at most so many bytes in JSON, and an ellipsis if that is not all. */
export function cutForJson(text: string, max: number): string {
  let kept = text.slice(0, max);
  for (let size = bytesInJson(kept); size > max; size = bytesInJson(kept))
    kept = kept.slice(0, Math.floor((kept.length * max) / size));
  return kept.length === text.length ? text : `${kept}…`;
}
