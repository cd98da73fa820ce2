/** Whether notices can be sent: the domain of POSTERN_NOTICES_FROM must be verified in an organization. */
import { findVerifiedOwner } from '#accounts/rows/domains-table.ts';
import { type FindingDraft, ok, skipped, warning } from '#operate/doctor/finding.ts';
import type { Mailbox } from '#platform/values/glossary.ts';
import type { OpenDb } from './database.ts';

export async function checkNoticesSender({ domain }: Mailbox, openDb: OpenDb): Promise<FindingDraft> {
  const db = await openDb().catch(() => null);
  // The check of the database says why.
  const owner = db && (await findVerifiedOwner(db, domain).catch(() => undefined));
  if (db === null || owner === undefined) return skipped('not known: the database cannot be read');
  if (owner !== null) return ok(`sent from ${domain}`);
  return warning(
    `no notices are sent: ${domain} is not verified in any organization`,
    `register it (postern domain add ${domain} --org ORG) and publish its records, or change POSTERN_NOTICES_FROM`,
  );
}
