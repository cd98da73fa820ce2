/**
 * Suppression lists, as dialects read and change them: the organization's, or that of a stream. Their lists are parts of it, by
 * the reasons.
 */

import { findSuppression, type SuppressionRecord } from '#accounts/rows/suppressions.ts';
import {
  type ListEntry,
  type SuppressionKind,
  searchList,
  suppressAddress,
  suppressAddresses,
  unsuppressAddress,
} from '#accounts/suppression-list.ts';
import { compareKey } from '#platform/values/address.ts';
import type { DialectCall } from './dialect.ts';

/** `stream`: the list of this stream; without it, that of all mail. */
export type ListCall = DialectCall & { stream?: string | null };

export function suppress(call: ListCall, address: string): Promise<boolean> {
  return suppressAddress(call, address);
}

/** Addresses that are on the list keep their reasons. */
export function suppressAll(call: ListCall, entries: ListEntry[]): Promise<number> {
  return suppressAddresses(call, entries);
}

/** False if the address was not on the list. */
export function unsuppress(call: ListCall, address: string): Promise<boolean> {
  return unsuppressAddress(call, withoutNul(address));
}

export function findSuppressed(
  { db, orgId, stream }: ListCall,
  address: string,
): Promise<SuppressionRecord | null> {
  return findSuppression(db, orgId, addressKeyOf(address), stream ?? undefined);
}

const addressKeyOf = (address: string) => compareKey(withoutNul(address));

/** PostgreSQL takes no NUL in a text, and no address has one. */
const withoutNul = (address: string) => address.replaceAll('\0', '\ufffd');

interface Wanted extends SuppressionKind {
  /** The address after which the list goes on, or before which the page ends; null: with the list. */
  after?: string | undefined;
  before?: string | null | undefined;
  limit: number;
}

const pageSize = 500;

/** In the order of the addresses; `hasMore`: there may be more. */
export async function listSuppressed(
  { db, orgId, stream }: ListCall,
  { after, before, limit, ...kind }: Wanted,
): Promise<{ found: SuppressionRecord[]; hasMore: boolean }> {
  const found: SuppressionRecord[] = [];
  const edge = before ?? after;
  let last = edge == null ? null : addressKeyOf(edge);
  do {
    const from = before === undefined ? { after: last } : { after: null, before: last };
    const page = await searchList(db, '', {
      ...kind,
      stream: stream ?? undefined,
      orgId,
      ...from,
      limit: pageSize,
    });
    found.push(...page.found);
    last = page.next;
  } while (last !== null && found.length < limit);
  const nearest = found.slice(0, limit);
  return {
    found: before === undefined ? nearest : nearest.toReversed(),
    hasMore: last !== null || found.length > limit,
  };
}

/** Statuses of the categories of bounces, for entries without a status of the host itself. */
const statuses: Record<string, string> = {
  unknown_user: '5.1.1',
  mailbox_disabled: '5.2.1',
  mailbox_full: '5.2.2',
  dns: '5.1.2',
  protocol: '5.1.3',
};

/** The error in a list of bounces for an entry of ours: the host's reply, or else what fits the reason. */
export function bounceOf({ reason, reply }: SuppressionRecord) {
  const category = reason.slice(reason.lastIndexOf(': ') + 2);
  const code = String(reply?.code ?? 550);
  const status = reply?.enhanced ?? statuses[category] ?? `${code[0]}.0.0`;
  return { code, status, text: reply?.text ?? reason };
}
