/** Export of the emails that the list's filters find as CSV, a row for each recipient; times are in UTC. */

import { csvText } from '#accounts/csv-text.ts';
import { sendExport } from '#front/dashboard/form-page.ts';
import type { DashboardPage } from '#front/dashboard/page.ts';
import { type EmailSummary, type Search, searchEmails } from '#mail/record/rows/search-emails.ts';
import { iso } from '#platform/base/clock.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { readFilters, searchOf } from './filters.ts';

export const exportPage: DashboardPage = {
  organization: {
    'GET /dashboard/o/:org/emails/export'(visit, { db, longWorkSlots, isDevelopment }) {
      const { org, query, now } = visit;
      const search = { ...searchOf(readFilters(query), now), orgId: org.id, withoutTest: !isDevelopment };
      return sendExport(visit, longWorkSlots.exports, 'emails.csv', csvPages(db, search));
    },
  },
};

/** At most; an email can have a thousand recipients, which searchEmails bounds by itself. */
const pageSize = 250;

const head = ['emailId', 'createdAt', 'from', 'recipient', 'kind', 'status', 'subject', 'tags', 'messageId'];

async function* csvPages(db: Db, search: Omit<Search, 'limit'>): AsyncGenerator<string> {
  yield csvText([head]);
  for (let after: string | undefined; ; ) {
    const { emails, next } = await searchEmails(db, { ...search, ...(after && { after }), limit: pageSize });
    if (emails.length > 0) yield csvText(emails.flatMap(rowsOf));
    if (next === null) return;
    after = next;
  }
}

function rowsOf({ id, createdAt, from, subject, tags, messageId, recipients }: EmailSummary): string[][] {
  const pairs = Object.entries(tags).map(([name, value]) => (value === '' ? name : `${name}=${value}`));
  return recipients.map(({ address, kind, status }) => [
    id,
    iso(createdAt),
    from,
    address,
    kind,
    status,
    subject,
    pairs.join(' '),
    messageId,
  ]);
}
