/** Changes and searches an organization's suppression list, for API, command line and dashboard. */
import {
  addSuppressions,
  removeSuppression,
  type SuppressionSearch,
  searchSuppressions,
  suppressionOf,
} from '#accounts/rows/suppressions.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { compareKey } from '#platform/values/address.ts';
import type { Reply } from '#platform/values/glossary.ts';

export { replyIn } from '#accounts/rows/bounce-reply.ts';
export { originOf, type SuppressionKind } from '#accounts/rows/suppressions.ts';

/** The reason of an entry that was added without one. */
export const defaultReason = 'manual';

interface ListChange {
  db: Db;
  orgId: string;
  now: number;
  /** The list; without it, that of all mail. */
  stream?: string | null | undefined;
  /** Wakes the readers of events; absent on the command line, whose events the server finds within a second. */
  eventSignal?: { notify(): void };
}

/** False if the address was on the list before; its entry does not change. */
export async function suppressAddress(
  change: ListChange,
  address: string,
  reason = defaultReason,
): Promise<boolean> {
  return (await suppressAddresses(change, [{ address, reason }])) > 0;
}

/** In parts: an import that was aborted can be repeated. `before`: how many addresses were on the list already. */
export async function importAddresses(
  change: ListChange,
  addresses: string[],
  signal?: AbortSignal,
): Promise<{ added: number; before: number }> {
  const entries = addresses.map((address) => ({ address, reason: 'imported' }));
  const added = await suppressAddresses(change, entries, signal);
  return { added, before: addresses.length - added };
}

export interface ListEntry {
  address: string;
  reason: string;
  /** With which the address bounced elsewhere. */
  reply?: Reply;
}

/** Resolves to the number of those that were not on the list before. */
export async function suppressAddresses(
  { db, orgId, now, stream, eventSignal }: ListChange,
  entries: ListEntry[],
  signal?: AbortSignal,
): Promise<number> {
  const list = entries.map(({ address, reason, reply }) => ({
    ...suppressionOf(orgId, address, reason, reply),
    stream,
  }));
  const added = await addSuppressions(db, list, now, signal);
  if (added > 0) eventSignal?.notify();
  return added;
}

/** False if the address was not on the list. */
export async function unsuppressAddress(
  { db, orgId, now, stream, eventSignal }: ListChange,
  address: string,
): Promise<boolean> {
  const isRemoved = await removeSuppression(db, orgId, compareKey(address), now, stream ?? undefined);
  if (isRemoved) eventSignal?.notify();
  return isRemoved;
}

/** Entries whose address contains `text`, in the form that addresses are compared in; all if it is empty. */
export function searchList(db: Db, text: string, page: Omit<SuppressionSearch, 'substring'>) {
  return searchSuppressions(db, { ...page, substring: text.trim().normalize('NFC').toLowerCase() || null });
}
