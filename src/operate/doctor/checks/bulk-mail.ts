/** Whether the newest mail that calls itself bulk can be unsubscribed from with one click (platform/values/one-click.ts). */
import { fieldValue, readHead } from '#mail/compose/head.ts';
import { newestMessages } from '#mail/record/rows/newest-messages.ts';
import { type FindingDraft, ok, skipped, warning } from '#operate/doctor/finding.ts';
import { parseMailbox } from '#platform/values/address.ts';
import { lacksOneClick, oneClickAdvice } from '#platform/values/one-click.ts';
import type { OpenDb } from './database.ts';

const maxNamed = 3;

function lacksIt(message: Buffer): boolean {
  const head = readHead(message);
  return lacksOneClick((name) => fieldValue(head, name));
}

export async function checkBulkMail(openDb: OpenDb): Promise<FindingDraft> {
  const db = await openDb().catch(() => null);
  const messages = db && (await newestMessages(db).catch(() => null));
  if (!messages) return skipped('not known: the database cannot be read');
  const lacking = messages.filter(({ bytes }) => lacksIt(bytes));
  if (lacking.length === 0) return ok(`of the newest ${messages.length} mails, no bulk mail lacks it`);
  const domains = [...new Set(lacking.map(({ from }) => parseMailbox(from)?.domain ?? from))];
  const named = domains.slice(0, maxNamed).join(', ') + (domains.length > maxNamed ? ' and others' : '');
  return warning(
    `${lacking.length} of the newest ${messages.length} mails are bulk mail without it, from ${named}`,
    oneClickAdvice,
  );
}
