/** The time in the ids of rows, which are UUIDs of version 7 (RFC 9562 section 5.7). */

/** When the row of an id was created. */
export function timeOfId(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

/** The greatest id of a millisecond. */
export function lastIdOf(time: number): string {
  const digits = Math.max(time, 0).toString(16).padStart(12, '0').slice(0, 12);
  return `${digits.slice(0, 8)}-${digits.slice(8)}-7fff-bfff-ffffffffffff`;
}

/** Before the id of every row. */
export const firstId = '00000000-0000-0000-0000-000000000000';
