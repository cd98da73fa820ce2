/**
 * Sends that people make in the dashboard: on the API's way, counted and charged as one of its calls, and held to the
 * same limits. There is no key; whoever calls has looked whether the person may.
 */
import { createHash } from 'node:crypto';
import type { Accept, SendRequest } from '../accept.ts';
import { requireNotPaused } from '../accounts/api-keys.ts';
import { overLimit, type RequestLimits, type Taken } from '../accounts/limits.ts';
import type { Admission } from '../api/admission.ts';
import type { SendAnswerRecord } from '../db/accept/send-record.ts';
import { findOrganization } from '../db/accounts/organizations.ts';
import { Refusal } from '../mail/refusal.ts';
import type { OrgVisit, PageParts } from './page.ts';

export interface Sending {
  accept: Accept;
  admission: Admission;
  hasSpace(): boolean;
  /** Counts a request of the organization. */
  countRequest(orgId: string, limits: RequestLimits): Promise<Taken>;
}

const retryDelayMs = 1000;

/** `size`: of what is sent, in bytes. Throws a Refusal; SEND_FAILED among them, whose cause is in the log by then. */
export async function send(
  { org }: OrgVisit,
  { db, sending, onError }: PageParts,
  request: SendRequest,
  size: number,
): Promise<SendAnswerRecord> {
  const slot = sending.hasSpace() ? await sending.admission.acquire(org.id, size) : null;
  if (!slot) {
    const message = 'The service takes no more just now. Nothing was charged; try again in a moment.';
    throw new Refusal('RATE_LIMIT_EXCEEDED', message, { retryAfterMs: retryDelayMs });
  }
  try {
    await countRequest();
    return (await sending.accept(request, { orgId: org.id, keyId: null, scopes: [] })).answer;
  } catch (error) {
    if (error instanceof Refusal && error.code === 'SEND_FAILED') onError('a send failed', error.cause);
    throw error;
  } finally {
    slot.release();
  }

  async function countRequest(): Promise<void> {
    const {
      pause,
      requestsPerSecond: perSecond,
      requestsPerDay: perDay,
    } = (await findOrganization(db, org.id))!;
    // An operator may look at a paused organization, and sends nothing in its name.
    requireNotPaused(pause);
    const limits = { perSecond, perDay };
    const { allowed, windows } = await sending.countRequest(org.id, limits);
    if (!allowed) throw overLimit(windows);
  }
}

/**
 * One form sends once, however often it is posted; changed, it is another send. `form`: the id that the form has, made
 * when it was shown.
 */
export function idempotencyOf(form: string, content: unknown): SendRequest['idempotency'] {
  const requestHash = createHash('sha256').update(JSON.stringify(content)).digest('hex');
  return { key: `dashboard ${form.slice(0, 36)} ${requestHash}`, requestHash };
}
