/**
 * The JSON of a webhook's body. It has no mail content and is smaller than 20 kB: if texts from outside (a reply, a clicked URL)
 * are too long, they are cut and end in "…".
 */

const maxBytes = 20_000;

/** Maximum lengths of a text, tried in turn until the body fits. */
const lengths = [2000, 1000, 500, 200, 100, 50, 20];

/** `shortest` replaces a body that has too many members to fit. */
export function boundedJson(body: unknown, shortest: unknown = body): string {
  const whole = JSON.stringify(body);
  if (fits(whole)) return whole;
  for (const length of lengths) {
    const text = JSON.stringify(body, (_key, value) =>
      typeof value === 'string' ? cut(value, length) : value,
    );
    if (fits(text)) return text;
  }
  return JSON.stringify(shortest);
}

function fits(text: string): boolean {
  return Buffer.byteLength(text) < maxBytes;
}

/** Never cuts a surrogate pair. */
function cut(text: string, length: number): string {
  if (text.length <= length) return text;
  const isHalf = /[\uD800-\uDBFF]/.test(text[length - 1]!);
  return `${text.slice(0, isHalf ? length - 1 : length)}…`;
}
