/**
 * Whether the newest bulk mail can be unsubscribed from with one click (platform/values/one-click.ts). One body in many emails is
 * found here, which no send can know; if links are tracked, each email has a body of its own.
 */
import { hash } from 'node:crypto';
import { fieldValue, readHead } from '#mail/compose/head.ts';
import { newestMessages, recipientsOfEmails } from '#mail/record/rows/newest-messages.ts';
import { type FindingDraft, ok, skipped, warning } from '#operate/doctor/finding.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { parseMailbox } from '#platform/values/address.ts';
import { lackingField, oneClickAdvice } from '#platform/values/one-click.ts';
import type { OpenDb } from './database.ts';

const maxNamed = 3;

export interface NewMail {
  /** Of the sender. */
  domain: string;
  lacksOneClick: boolean;
}

/** The newest mails of an organization, or of all. */
export async function readNewMails(db: Db, orgId?: string): Promise<NewMail[]> {
  const messages = await newestMessages(db, orgId);
  const read = messages.map(({ emailId, from, bytes }) => {
    const head = readHead(bytes);
    return { emailId, from, head, body: hash('sha256', bytes.subarray(head.bodyStart)) };
  });
  const audiences = await readAudiences(db, new Map(read.map(({ emailId, body }) => [emailId, body])));
  return read.map(({ from, head, body }) => ({
    domain: parseMailbox(from)?.domain ?? from,
    lacksOneClick: lackingField((name) => fieldValue(head, name), audiences.get(body)) !== undefined,
  }));
}

/** How many people got each body. `bodies`: by the ids of the emails. */
async function readAudiences(db: Db, bodies: Map<string, string>): Promise<Map<string, number>> {
  const pairs = await recipientsOfEmails(db, [...bodies.keys()]);
  const groups = Map.groupBy(pairs, ([emailId]) => bodies.get(emailId)!);
  return new Map([...groups].map(([body, some]) => [body, new Set(some.map(([, one]) => one)).size]));
}

export async function checkBulkMail(openDb: OpenDb): Promise<FindingDraft> {
  const db = await openDb().catch(() => null);
  const mails = db && (await readNewMails(db).catch(() => null));
  return mails ? judgeBulkMail(mails) : skipped('not known: the database cannot be read');
}

export function judgeBulkMail(mails: NewMail[]): FindingDraft {
  const lacking = mails.filter(({ lacksOneClick }) => lacksOneClick);
  if (lacking.length === 0) return ok(`of the newest ${mails.length} mails, no bulk mail lacks it`);
  const domains = [...new Set(lacking.map(({ domain }) => domain))];
  const named = domains.slice(0, maxNamed).join(', ') + (domains.length > maxNamed ? ' and others' : '');
  return warning(
    `${lacking.length} of the newest ${mails.length} mails are bulk mail without it, from ${named}`,
    oneClickAdvice,
  );
}
