/**
 * Sends that people make in the dashboard. They take the path of the API: counted and charged as an API request and held to the
 * same limits. They have no API key; the caller has checked that the person may send.
 */
import { hash } from 'node:crypto';
import { requireNotPaused } from '#accounts/api-keys.ts';
import type { RequestLimits, Taken } from '#accounts/limits.ts';
import { findOrganization } from '#accounts/rows/organizations.ts';
import { admitSend, countSend, type SendCapacity } from '#front/api/send/admit-send.ts';
import type { Accept } from '#mail/accept/accept.ts';
import type { SendRequest } from '#mail/accept/requested-send.ts';
import type { Db } from '#platform/database/engine/open.ts';
import type { SendAnswerRecord } from '#platform/database/tables/send-record.ts';
import { Refusal } from '#platform/values/refusal.ts';

export interface Sending extends SendCapacity {
  accept: Accept;
  /** Counts a request of the organization. */
  countRequest(orgId: string, limits: RequestLimits): Promise<Taken>;
}

interface SendParts {
  db: Db;
  sending: Sending;
  onError(what: string, error: unknown): void;
}

/** `size`: bytes of the content. Throws a Refusal; the cause of SEND_FAILED is logged here. */
export async function send(
  { orgId, isTest }: { orgId: string; isTest: boolean },
  { db, sending, onError }: SendParts,
  request: SendRequest,
  size: number,
): Promise<SendAnswerRecord> {
  const slot = await admitSend(sending, orgId, size);
  try {
    await countRequest(orgId, db, sending);
    return (await sending.accept(request, { orgId, keyId: null, scopes: [], isTest })).answer;
  } catch (error) {
    if (error instanceof Refusal && error.code === 'SEND_FAILED') onError('a send failed', error.cause);
    throw error;
  } finally {
    slot.release();
  }
}

async function countRequest(orgId: string, db: Db, sending: Sending): Promise<void> {
  const { pause, requestsPerSecond, requestsPerDay } = (await findOrganization(db, orgId))!;
  // An operator can open a paused organization, but cannot send in its name.
  requireNotPaused(pause);
  await countSend(sending.countRequest, orgId, { perSecond: requestsPerSecond, perDay: requestsPerDay });
}

/** A form sends once, however often it is posted; with changed content it is another send. `form`: the id made with the form. */
export function idempotencyOfForm(form: string, content: unknown): SendRequest['idempotency'] {
  const requestHash = hashOf(content);
  return { key: `dashboard ${hashOf([form, requestHash])}`, requestHash };
}

const hashOf = (content: unknown) => hash('sha256', JSON.stringify(content));
