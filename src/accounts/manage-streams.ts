/** Creates, changes and removes the streams of an organization, for API, command line, dashboard and dialects. */
import { keysOfStream } from '#accounts/rows/keys.ts';
import {
  changeStream,
  findStream,
  insertStream,
  removeStream,
  type Stream,
  type StreamSettings,
} from '#accounts/rows/streams.ts';
import { iso } from '#platform/base/clock.ts';
import { isOneLine } from '#platform/base/sanitize.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { Refusal } from '#platform/values/refusal.ts';
import {
  defaultStream,
  isStreamName,
  maxStreams,
  storedStream,
  streamNameForm,
} from '#platform/values/stream.ts';

type NewStream = Pick<Stream, 'orgId' | 'name'> & Partial<StreamSettings>;

export async function makeStream(db: Db, { orgId, name, ...given }: NewStream, now: number): Promise<Stream> {
  if (!isStreamName(name))
    throw new Refusal('BAD_REQUEST', `name: must be ${streamNameForm}, in lower case.`);
  if (name === defaultStream)
    throw new Refusal(
      'BAD_REQUEST',
      `${defaultStream} is there from the start: mail without a stream is in it.`,
    );
  requireTitle(given);
  const stream: Stream = {
    orgId,
    name,
    title: given.title ?? name,
    kind: given.kind ?? 'transactional',
    pool: given.pool ?? null,
    openTracking: given.openTracking ?? null,
    clickTracking: given.clickTracking ?? null,
    emailsPerDay: given.emailsPerDay ?? null,
    color: given.color ?? null,
    createdAt: now,
  };
  const inserted = await insertStream(db, stream);
  if (inserted === 'created') return stream;
  throw new Refusal(
    'BAD_REQUEST',
    inserted === 'taken'
      ? `The organization has a stream named ${name} already. Change that one, or choose another name.`
      : `An organization can have ${maxStreams} streams beside ${defaultStream}. Remove one first.`,
  );
}

export async function alterStream(
  db: Db,
  stream: Pick<Stream, 'orgId' | 'name'>,
  changes: Partial<StreamSettings>,
): Promise<Stream> {
  requireTitle(changes);
  await changeStream(db, stream, changes);
  const changed = await findStream(db, stream.orgId, stream.name);
  if (changed) return changed;
  throw new Refusal('NOT_FOUND', 'There is no such stream.');
}

export const longestTitle = 100;

/** Other services' APIs name streams, too. PostgreSQL takes no NUL. */
function requireTitle({ title }: Partial<StreamSettings>): void {
  if (title === undefined || isOneLine(title, longestTitle)) return;
  throw new Refusal(
    'BAD_REQUEST',
    `The name of a stream for people must be one line of text with at most ${longestTitle} characters.`,
  );
}

/** Mail that waits is still sent. What it has suppressed is kept for a stream that is created under its name. */
export async function deleteStream(db: Db, { orgId, name }: Pick<Stream, 'orgId' | 'name'>): Promise<void> {
  const labels = await keysOfStream(db, orgId, name);
  if (labels.length > 0)
    throw new Refusal(
      'BAD_REQUEST',
      `The stream ${name} is that of ${labels.length === 1 ? 'the key' : 'the keys'} ${labels.join(', ')}, which could then send nothing. Revoke or replace ${labels.length === 1 ? 'it' : 'them'} first.`,
    );
  await removeStream(db, orgId, name);
}

/** The name as rows have it, of a stream that is there; null for `transactional`. */
export async function requireStreamName(
  db: Db,
  orgId: string,
  name: string | null | undefined,
): Promise<string | null> {
  const stored = storedStream(name);
  if (stored === null || (await findStream(db, orgId, stored))) return stored;
  throw new Refusal(
    'BAD_REQUEST',
    `The organization has no stream ${JSON.stringify(stored.slice(0, 100))}. Create it first.`,
  );
}

/** A stream as API and command line show it. */
export function streamDocument(stream: Stream) {
  const { name, title, kind, pool, openTracking, clickTracking, emailsPerDay, color, createdAt } = stream;
  return {
    name,
    title,
    kind,
    pool,
    tracking: { openTracking, clickTracking },
    emailsPerDay,
    color,
    createdAt: iso(createdAt),
  };
}
