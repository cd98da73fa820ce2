/**
 * An event as a webhook tells it: `{type, timestamp, data}`. Made anew for each try, and the same each time, for events
 * and emails do not change. It has no mail content, and is less than 20 kB: where a text of somebody else's (a reply,
 * a clicked URL) would make it longer, the long ones are cut, and end in "…".
 */
import type { EventRecord } from '../db/events/read-events.ts';
import { outwardEvent } from '../record/event.ts';

const maxBytes = 20_000;

/** Of a text, before it is cut further. */
const lengths = [2000, 1000, 500, 200, 100, 50, 20];

export function bodyOf(event: EventRecord): string {
  const { type, timestamp, data } = outwardEvent(event);
  const body = { type, timestamp, data };
  const whole = JSON.stringify(body);
  if (fits(whole)) return whole;
  for (const length of lengths) {
    const text = JSON.stringify(body, (_key, value) =>
      typeof value === 'string' ? cut(value, length) : value,
    );
    if (fits(text)) return text;
  }
  const { emailId, id, recipient } = data;
  return JSON.stringify({ ...body, data: { emailId, id, recipient } });
}

function fits(text: string): boolean {
  return Buffer.byteLength(text) < maxBytes;
}

/** Never between the halves of a surrogate pair. */
function cut(text: string, length: number): string {
  if (text.length <= length) return text;
  const isHalf = /[\uD800-\uDBFF]/.test(text[length - 1]!);
  return `${text.slice(0, isHalf ? length - 1 : length)}…`;
}
