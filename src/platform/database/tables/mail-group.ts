/**
 * Groups of an organization's mail, by which it is counted (mail/record/rows/group-statistics.ts) and held
 * (mail/record/auto-pause/): that of a key, of a stream, or with a tag. What decides is of the email, so a mail never changes its
 * group.
 */

/** The one that is named first is preferred if two have the same mail. */
export const mailGroupKinds = ['key', 'stream', 'tag'] as const;

export type MailGroupKind = (typeof mailGroupKinds)[number];

export interface MailGroup {
  kind: MailGroupKind;
  /** The id of a key, the name of a stream, a tag as statistics name it. */
  name: string;
}

/** A group whose mail is held, by the id of its pause. */
export interface HeldGroup extends MailGroup {
  pauseId: string;
}

/** What of an email decides which groups it is in. */
export interface Grouped {
  /** Null: sent without a key, in the dashboard. */
  keyId: string | null;
  stream?: string | null;
  tags: Record<string, string>;
  isTest: boolean;
}

/** The name of the group `key` of mail that was sent without a key. */
export const withoutKey = 'dashboard';

/** A name is cut after this: the index of PostgreSQL takes some 2,700 bytes. */
const maxName = 400;

/** PostgreSQL takes neither NUL nor half of a surrogate pair. */
export function storableName(name: string): string {
  return name.slice(0, maxName).toWellFormed().replaceAll('\0', '\uFFFD');
}

export function tagNames(tags: Record<string, string>): string[] {
  return Object.entries(tags).map(([name, value]) => (value === '' ? name : `${name}=${value}`));
}

/** Test mail is in no group: it is neither counted nor held. */
export function isInGroup({ kind, name }: MailGroup, { keyId, stream, tags, isTest }: Grouped): boolean {
  if (isTest) return false;
  if (kind === 'key') return name === (keyId ?? withoutKey);
  if (kind === 'stream') return name === stream;
  return tagNames(tags).some((tag) => storableName(tag) === name);
}

/** Why a mail is held, in its events. */
export const pauseReason = ({ kind, name }: MailGroup) => `auto-pause of the ${kind} ${name}`;
