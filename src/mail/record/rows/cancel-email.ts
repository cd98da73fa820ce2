/** Cancels what has not been sent of an email. The database decides: a recipient that a node has leased is being sent. */

import { applyQueueAction } from '#mail/queue/rows/apply-queue-action.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { type EmailRecord, findEmail } from './emails.ts';

export interface CanceledEmail {
  /** Recipients that nothing more is sent to, including those that were canceled before. */
  canceled: string[];
  /** Recipients that are being sent to, or whose state was final. */
  tooLate: string[];
  /** The email's cost now, after the refund. */
  credits: number;
}

export async function cancelEmail(
  db: Db,
  { id, orgId }: Pick<EmailRecord, 'id' | 'orgId'>,
  { reason, bySender, now }: { reason: string; bySender: boolean; now: number },
): Promise<CanceledEmail | null> {
  await applyQueueAction(db, { emailId: id, orgId }, { action: 'cancel', reason, bySender, now });
  const email = await findEmail(db, id, orgId);
  if (!email) return null;
  const { deliveries, credits } = email;
  const addressesOf = (isWanted: (status: string) => boolean) =>
    deliveries.filter(({ status }) => isWanted(status)).map(({ recipient }) => recipient);
  return {
    canceled: addressesOf((status) => status === 'canceled'),
    tooLate: addressesOf((status) => !['canceled', 'suppressed', 'insufficient_credit'].includes(status)),
    credits,
  };
}
