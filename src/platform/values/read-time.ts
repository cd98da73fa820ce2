/**
 * Times as programs write them: ISO 8601 or RFC 3339 with an offset, also with a blank for the `T`, letters in lower case, an
 * offset without its colon or minutes, or without seconds. A time without an offset could mean several, and is none.
 */

export const timeForm =
  'a time in ISO 8601 with an offset, such as 2026-12-24T18:00:00+01:00 or 2026-12-24T17:00:00Z';

const form =
  /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)? ?(?:[Zz]|([+-])(\d\d)(?::?(\d\d))?)$/;

/** In milliseconds; null if the text is not such a time. */
export function readTime(text: string): number | null {
  const parts = form.exec(text.trim());
  if (!parts) return null;
  const [year, month, day, hour, minute, second] = parts.slice(1, 7).map((part) => Number(part ?? 0)) as Six;
  const [, , , , , , , fraction = '', sign, offsetHours = '0', offsetMinutes = '0'] = parts;
  if (hour > 23 || minute > 59 || second > 59 || Number(offsetHours) > 23 || Number(offsetMinutes) > 59)
    return null;
  const midnight = Date.UTC(year, month - 1, day);
  const date = new Date(midnight);
  // The 30th of February would be a day in March.
  if (date.getUTCFullYear() !== year || date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day)
    return null;
  const offset = (Number(offsetHours) * 60 + Number(offsetMinutes)) * (sign === '-' ? -60_000 : 60_000);
  const ofDay = ((hour * 60 + minute) * 60 + second) * 1000 + Number(fraction.padEnd(3, '0').slice(0, 3));
  return midnight + ofDay - offset;
}

type Six = [number, number, number, number, number, number];
