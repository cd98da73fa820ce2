/**
 * Streams: named parts of an organization's mail, each with its own IP pool, tracking default, suppressions, statistics and limit.
 * Mail without a stream is in `transactional`, which has no row: it is as the organization and the domain are set.
 */
import { hash } from 'node:crypto';

export const defaultStream = 'transactional';

/**
 * transactional: sent because of what one person did. subscribed: sent to people who have subscribed, so each email has a link to
 * unsubscribe (RFC 8058).
 */
export const streamKinds = ['transactional', 'subscribed'] as const;

export type StreamKind = (typeof streamKinds)[number];

/** Beside `transactional`. */
export const maxStreams = 10;

const namePattern = /^[a-z0-9](?:[a-z0-9_-]{0,28}[a-z0-9])?$/;

export const isStreamName = (text: string) => namePattern.test(text);

export const streamNameForm = 'a name of 1 to 30 letters (a to z), digits, - and _';

/** As rows have it: null for mail without a stream. */
export const storedStream = (name: string | null | undefined): string | null =>
  !name || name === defaultStream ? null : name;

/** Postmark's name of the stream that its servers have from the start. */
const postmarkDefault = 'outbound';

export const postmarkStreamOf = (name: string | null): string => name ?? postmarkDefault;

/** By Postmark's name; null for the default. */
export const streamOfPostmark = (name: string | null | undefined): string | null =>
  name === postmarkDefault ? null : storedStream(name);

/** SendGrid's groups have numbers: a hash of the name, which an organization's few streams do not share. */
export function streamNumber(name: string | null): number {
  return name === null ? 0 : hash('sha256', name, 'buffer').readUInt32BE() >>> 8;
}
