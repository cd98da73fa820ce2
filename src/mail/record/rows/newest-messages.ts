/** The newest mails of organizations, or of one, as they were sent; neither test mail nor the server's own. */
import { query } from '#platform/database/engine/json-rows.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { bytesOf, type StoredMessage, storedMessage } from '#platform/database/tables/messages.ts';
import { serverOrgId } from '#platform/values/glossary.ts';

const maxRead = 100;
/** Rows with large files are left out, and emptied ones, of which there may be millions. */
const maxSize = 64 * 1024;
const maxScanned = 500;

interface NewMessage {
  emailId: string;
  from: string;
  bytes: Buffer;
}

export async function newestMessages(db: Db, orgId?: string): Promise<NewMessage[]> {
  const [newest, given] =
    orgId === undefined
      ? ['id in (select id from messages order by id desc limit ?)', [maxScanned]]
      : ['email_id in (select id from emails where org_id = ? order by id desc limit ?)', [orgId, maxRead]];
  const rows = await query<StoredMessage & { emailId: string }>(
    db,
    `select messages.email_id as "emailId", ${storedMessage}
      where messages.${newest}
        and messages.size > 0 and messages.size <= ?
      order by messages.id desc limit ?`,
    [...given, maxSize, maxRead],
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
    return from === undefined ? [] : [{ emailId: row.emailId, from, bytes: bytesOf(row) }];
  });
}

const maxRecipients = 5_000;

/** The recipients of emails, as pairs of an email's id and an address; of many, only the first ones. */
export async function recipientsOfEmails(db: Db, ids: string[]): Promise<[string, string][]> {
  const rows = await db('deliveries')
    .whereIn('email_id', ids)
    .limit(maxRecipients)
    .select('email_id', 'recipient');
  return rows.map(({ email_id, recipient }) => [email_id, recipient]);
}
