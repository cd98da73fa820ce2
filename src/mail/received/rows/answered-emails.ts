/** Finds the email of an organization that a received mail answers, by the Message-IDs that it names. */
import type { Db } from '#platform/database/engine/open.ts';
import type { ReadMessageId } from '#platform/values/message-id.ts';

/**
 * Message-IDs that we have made carry the email's id under our key; others, which applications chose, are not found. One of
 * another organization's mail is nothing here, although its recipient may well have written to this one.
 */
export async function findAnswered(
  db: Db,
  orgId: string,
  messageIds: readonly string[],
  read: ReadMessageId,
): Promise<string | null> {
  const emailIds = messageIds.flatMap((id) => read(id.slice(0, Math.max(id.lastIndexOf('@'), 0))) ?? []);
  if (emailIds.length === 0) return null;
  const found: string[] = await db('emails').whereIn('id', emailIds).where({ org_id: orgId }).pluck('id');
  return emailIds.find((id) => found.includes(id)) ?? null;
}
