/** The newest mails of organizations, as they were sent; neither test mail nor the server's own. */
import { query } from '#platform/database/engine/json-rows.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { bytesOf, type StoredMessage, storedMessage } from '#platform/database/tables/messages.ts';
import { serverOrgId } from '#platform/values/glossary.ts';

const maxRead = 100;
/** Rows with large files are left out, and emptied ones, of which there may be millions. */
const maxSize = 64 * 1024;
const maxScanned = 500;

export async function newestMessages(db: Db): Promise<{ from: string; bytes: Buffer }[]> {
  const rows = await query<StoredMessage & { emailId: string }>(
    db,
    `select messages.email_id as "emailId", ${storedMessage}
      where messages.id in (select id from messages order by id desc limit ?)
        and messages.size > 0 and messages.size <= ?
      order by messages.id desc limit ?`,
    [maxScanned, maxSize, maxRead],
  );
  const ids = [...new Set(rows.map(({ emailId }) => emailId))];
  const emails = await db('emails')
    .whereIn('id', ids)
    .where({ is_test: false })
    .whereNot('org_id', serverOrgId)
    .select('id', 'sender');
  const senders = new Map(emails.map(({ id, sender }) => [id, sender as string]));
  return rows.flatMap((row) => {
    const from = senders.get(row.emailId);
    return from === undefined ? [] : [{ from, bytes: bytesOf(row) }];
  });
}
