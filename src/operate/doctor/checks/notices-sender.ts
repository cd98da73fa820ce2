/** Whether notices can be sent: an organization must have the domain of POSTERN_NOTICES_FROM, verified. */
import { findVerifiedOwner } from '../../../db/accounts/domains-table.ts';
import type { Mailbox } from '../../../glossary.ts';
import { type FindingDraft, ok, skipped, warning } from '../finding.ts';
import type { OpenDb } from './database.ts';

export async function checkNoticesSender({ domain }: Mailbox, openDb: OpenDb): Promise<FindingDraft> {
  const db = await openDb();
  if (db === null) return skipped('not known: there is no database yet');
  if ((await findVerifiedOwner(db, domain)) !== null) return ok(`sent from ${domain}`);
  return warning(
    `none are sent, because no organization has ${domain}, verified`,
    `postern domain add ${domain} --org ORG and publish its records, or change POSTERN_NOTICES_FROM`,
  );
}
