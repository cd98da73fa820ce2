/**
 * Strangers' text made harmless for whoever looks at it: control characters, which could move a terminal's cursor or
 * worse, and those that turn the direction of what follows, come out visible.
 */

const unsafe = /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/gu;
/** JSON.stringify escapes those below a space itself. */
const unsafeInJson = /[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

export function sanitize(text: string): string {
  return text.replace(unsafe, (each) => {
    const hex = each.charCodeAt(0).toString(16);
    return hex.length > 2 ? `\\u${hex.padStart(4, '0')}` : `\\x${hex.padStart(2, '0')}`;
  });
}

/** JSON text that means what it meant. */
export function sanitizeJson(json: string): string {
  // The mail log asks of every line, and nearly all are ASCII, which is seen without the slow expression.
  if (Buffer.byteLength(json) === json.length && !json.includes('\x7f')) return json;
  return json.replace(unsafeInJson, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
