/**
 * The admission of every send before its content is accepted, over HTTP, by SMTP submission and from the dashboard: space
 * on the disk, then a slot, then the organization's request limits. authorize.ts counts requests over HTTP, which also
 * reports the limits in headers.
 */

import { overLimit, type RequestLimits, type Taken } from '#accounts/limits.ts';
import type { Admission } from '#front/http/admission.ts';
import { busyRefusal } from '#front/http/server-busy.ts';
import type { ByteHold } from '#platform/base/limits/byte-budget.ts';

export interface SendCapacity {
  admission: Admission;
  /** Whether the disk has space for new email. */
  hasSpace(): boolean;
}

/** A slot soon becomes free, but space on a full disk has to be made by a person. */
const busyMs = 1_000;
const fullMs = 30_000;
const diskFull = 'The server is low on disk space and is not accepting email';

/** `bytes` of the content have arrived before. */
export async function admitSend(capacity: SendCapacity, orgId: string, bytes: number): Promise<ByteHold> {
  const { admission, hasSpace } = capacity;
  if (!hasSpace()) throw busyRefusal(fullMs, diskFull);
  const slot = await admission.acquire(orgId, bytes);
  if (!slot) throw busyRefusal(busyMs);
  return slot;
}

/** `take` counts a request of the organization. */
export async function countSend(
  take: (orgId: string, limits: RequestLimits) => Promise<Taken>,
  orgId: string,
  limits: RequestLimits,
): Promise<void> {
  if (limits.perSecond === null && limits.perDay === null) return;
  const { allowed, windows } = await take(orgId, limits);
  if (!allowed) throw overLimit(windows);
}
