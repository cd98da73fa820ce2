/** Our streams by the names that other services give them: a topic, a group, a category or a tag. */
import { findStream, listStreams, type Stream } from '#accounts/rows/streams.ts';
import { Refusal } from '#platform/values/refusal.ts';
import { streamNumber } from '#platform/values/stream.ts';
import type { DialectCall } from './dialect.ts';

/** The stream that the first of these categories or tags names; undefined: none does. */
export async function streamNamedBy(
  call: DialectCall,
  names: readonly string[],
): Promise<string | undefined> {
  if (names.length === 0) return undefined;
  const known = new Set(await streamNames(call));
  return names.find((name) => known.has(name));
}

/** Without streams, nothing is looked up. */
export async function streamNames({ db, orgId, caller }: DialectCall): Promise<string[]> {
  return caller.hasStreams ? (await listStreams(db, orgId)).map(({ name }) => name) : [];
}

/** By its number (SendGrid's unsubscribe groups). */
export async function findStreamByNumber({ db, orgId }: DialectCall, number: number): Promise<Stream | null> {
  const streams = await listStreams(db, orgId);
  return streams.find(({ name }) => streamNumber(name) === number) ?? null;
}

export async function requireKnownStream({ db, orgId }: DialectCall, name: string): Promise<Stream> {
  const found = await findStream(db, orgId, name);
  if (found) return found;
  throw new Refusal(
    'NOT_FOUND',
    `There is no stream ${JSON.stringify(name.slice(0, 100))}. Create it first.`,
  );
}
