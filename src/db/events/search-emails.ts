/**
 * Searches an organization's emails, the newest first. There is one index for it, (org_id, id), and an id tells when
 * its email was made: so a search seeks its time window and goes through what is there, a bounded number of emails a
 * request. Where that was not enough for a page it answers where to go on, and the next request does.
 */

import type { DeliveryStatus } from '../../glossary.ts';
import { compareKey, parseMailbox } from '../../mail/address.ts';
import { type EmailStatus, statusOf } from '../../record/states.ts';
import type { Db } from '../engine/open.ts';
import { lastIdOf } from './retention.ts';

export interface Search {
  orgId: string;
  /** Of the email, or of one of its recipients. */
  status?: EmailStatus;
  /** As addresses are compared; or a domain (A-label) with its @. */
  to?: string;
  from?: string;
  /** What these contain, whatever the letters' case: a recipient's address, the sender, the subject. */
  contains?: { to?: string; from?: string; subject?: string };
  /** The name or the value of one of its tags. */
  tag?: string;
  tags: Record<string, string>;
  since?: number;
  until?: number;
  /** Emails older than this one. */
  after?: string;
  limit: number;
}

export interface EmailSummary {
  id: string;
  messageId: string;
  status: EmailStatus;
  from: string;
  to: { address: string; status: DeliveryStatus }[];
  subject: string;
  tags: Record<string, string>;
  createdAt: number;
  updatedAt: number;
}

export interface SearchPage {
  emails: EmailSummary[];
  /** Where to go on; null: that was all. */
  next: string | null;
}

/** So many emails are gone through for a request, and so many by one statement, between which others have their turn. */
const maxScanned = 2000;
const maxAtOnce = 250;

/** An id is made a moment before its email is accepted, and clocks are set now and then. */
const slackMs = 60 * 60_000;

/** When the email of an id was made. */
export function timeOfId(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

export async function searchEmails(db: Db, search: Search): Promise<SearchPage> {
  const found: EmailSummary[] = [];
  let after = search.after;
  for (let scanned = 0; scanned < maxScanned; scanned += maxAtOnce) {
    const page = await readEmails(db, { ...search, after });
    for (const email of page) {
      if (found.length === search.limit) return { emails: found, next: found.at(-1)!.id };
      if (isWanted(email, search)) found.push(email);
    }
    if (page.length < maxAtOnce) return { emails: found, next: null };
    after = page.at(-1)!.id;
  }
  return { emails: found, next: after ?? null };
}

async function readEmails(db: Db, { orgId, since, until, after }: Search): Promise<EmailSummary[]> {
  const query = db('emails').where({ org_id: orgId }).orderBy('id', 'desc').limit(maxAtOnce);
  if (after !== undefined) query.where('id', '<', after);
  if (until !== undefined) query.where('id', '<=', lastIdOf(until + slackMs));
  if (since !== undefined) query.where('id', '>', lastIdOf(since - slackMs));
  const rows = await query.select(...columns);
  const deliveries = await db('deliveries')
    .whereIn(
      'email_id',
      rows.map(({ id }) => id),
    )
    .orderBy(['email_id', 'position'])
    .select('email_id', 'recipient', 'status');
  const byEmail = Map.groupBy(deliveries, ({ email_id }) => email_id);
  return rows.map((row) => summaryOf(row, byEmail.get(row.id) ?? []));
}

const columns = ['id', 'message_id', 'sender', 'subject', 'tags', 'created_at', 'updated_at'];

// biome-ignore lint/suspicious/noExplicitAny: a row is what the driver gives
function summaryOf(row: any, deliveries: any[]): EmailSummary {
  const to = deliveries.map(({ recipient, status }) => ({ address: recipient, status }));
  return {
    id: row.id,
    messageId: row.message_id,
    status: statusOf(to.map(({ status }) => status)),
    from: row.sender,
    to,
    subject: row.subject,
    tags: JSON.parse(row.tags),
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

function isWanted(email: EmailSummary, search: Search): boolean {
  const { status, to, from, tags, since, until } = search;
  if (since !== undefined && email.createdAt < since) return false;
  if (until !== undefined && email.createdAt >= until) return false;
  if (status && email.status !== status && !email.to.some((each) => each.status === status)) return false;
  if (to !== undefined && !email.to.some(({ address }) => isAt(address, to))) return false;
  if (from !== undefined && !isAt(email.from, from)) return false;
  if (search.contains && !hasWords(email, search.contains)) return false;
  if (search.tag !== undefined && !Object.entries(email.tags).flat().includes(search.tag)) return false;
  return Object.entries(tags).every(([name, value]) => email.tags[name] === value);
}

function hasWords(email: EmailSummary, { to, from, subject }: NonNullable<Search['contains']>): boolean {
  if (subject !== undefined && !has(email.subject, subject)) return false;
  if (from !== undefined && !has(email.from, from)) return false;
  return to === undefined || email.to.some(({ address }) => has(address, to));
}

function has(text: string, words: string): boolean {
  return text.toLowerCase().includes(words.toLowerCase());
}

/** `wanted`: an address as addresses are compared, or a domain with its @. */
function isAt(text: string, wanted: string): boolean {
  const mailbox = parseMailbox(text);
  if (mailbox === null) return false;
  return wanted.startsWith('@') ? `@${mailbox.domain}` === wanted : compareKey(mailbox.address) === wanted;
}
