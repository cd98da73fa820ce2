/**
 * Searches an organization's received mail, the newest first. No index answers it: one request reads a bounded number of mails,
 * and the next continues after the last of them.
 */
import type { ReceivedMail } from '#mail/received/received-mail.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { pagedSearch } from '#platform/database/tables/paged-search.ts';
import { lastIdOf } from '#platform/database/tables/time-of-id.ts';
import { listReceived } from './received-mails.ts';

export interface ReceivedSearch {
  orgId: string;
  /** Parts of a recipient's address, of the sender or the From field, and of the subject; letter case does not matter. */
  to?: string | undefined;
  from?: string | undefined;
  subject?: string | undefined;
  since?: number | undefined;
  until?: number | undefined;
  /** Mails older than this one. */
  after?: string | undefined;
  limit: number;
}

const maxScanned = 1000;
const pageSize = 100;

/** `next`: continue after this; null: that was all. */
export async function searchReceived(
  db: Db,
  search: ReceivedSearch,
): Promise<{ mails: ReceivedMail[]; next: string | null }> {
  const { orgId, since = 0, until, limit } = search;
  const newest = until === undefined ? null : lastIdOf(until);
  const { found, next } = await pagedSearch({
    async read(after, size) {
      const mails = await listReceived(db, orgId, { before: after ?? undefined, limit: size });
      // An id has the time of its mail: a mail from before the search begins ends it.
      return { rows: mails.filter(({ at }) => at >= since) };
    },
    positionOf: ({ id }) => id,
    isWanted: (mail) => isWanted(mail, search),
    after: search.after ?? newest,
    limit,
    maxScanned,
    pageSize,
  });
  return { mails: found, next };
}

function isWanted(mail: ReceivedMail, { to, from, subject, until }: ReceivedSearch): boolean {
  if (until !== undefined && mail.at >= until) return false;
  if (subject !== undefined && !has(mail.subject, subject)) return false;
  if (from !== undefined && !has(mail.sender, from) && !has(mail.fromHeader, from)) return false;
  return to === undefined || mail.recipients.some((address) => has(address, to));
}

const has = (text: string, words: string) => text.toLowerCase().includes(words.toLowerCase());
