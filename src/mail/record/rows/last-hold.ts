/** The operator's reason for the latest hold of a recipient's mail; null if it was never held. */
import type { Db } from '#platform/database/engine/open.ts';

export async function lastHold(db: Db, emailId: string, recipient: string): Promise<string | null> {
  const row = await db('events')
    .where({ email_id: emailId, recipient, type: 'email.held' })
    .orderBy('position', 'desc')
    .first('data');
  return row ? String(JSON.parse(row.data).reason) : null;
}
