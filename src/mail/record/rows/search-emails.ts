/**
 * Searches an organization's emails, the newest first. The only index for it is (org_id, id), and an id contains the time of
 * its email: a search seeks its time window and reads a bounded number of emails there. If that is not enough for a page, the
 * next request continues after the last email.
 */

import { nearestFirst } from '#platform/database/engine/neighbors.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { emails } from '#platform/database/tables/mail-tables.ts';
import { pagedSearch } from '#platform/database/tables/paged-search.ts';
import { lastIdOf } from '#platform/database/tables/time-of-id.ts';
import { compareKey, parseMailbox } from '#platform/values/address.ts';
import type { Bounce, DeliveryStatus, RecipientKind } from '#platform/values/glossary.ts';
import { type EmailStatus, statusOf } from '#platform/values/states.ts';

export interface Search {
  orgId: string;
  /** Only mail of test keys, which has an index of its own. */
  onlyTest?: boolean;
  withoutTest?: boolean;
  /** The status of the email, or of one of its recipients; or what `ofOne` says of one of those who are meant. */
  status?: EmailStatus | keyof typeof ofOne;
  /** A normalized address, or a domain (A-label) with its @. */
  to?: string;
  from?: string;
  /** Parts of a recipient's address (any of them), the sender, the subject, of its id or Message-ID; case-insensitive. */
  contains?: { to?: string[]; from?: string; subject?: string; id?: string };
  /** The name or the value of one of its tags. */
  tag?: string;
  tags: Record<string, string>;
  /** The id of its key; null: sent without one. */
  keyId?: string | null;
  /** One of its recipients bounced so. */
  bounce?: { category: string } | { fault: string };
  since?: number;
  until?: number;
  /** Emails older than this one. */
  after?: string;
  /** Emails newer than this one; those nearest to it are found. */
  before?: string;
  limit: number;
}

const summaries = emails.pick(
  'stream',
  'id',
  'messageId',
  'from',
  'replyTo',
  'subject',
  'tags',
  'tracking',
  'isTest',
  'keyId',
  'scheduledAt',
  'createdAt',
  'updatedAt',
);

export type EmailSummary = ReturnType<typeof summaries.read> & {
  status: EmailStatus;
  recipients: FoundRecipient[];
};

interface FoundRecipient {
  address: string;
  kind: RecipientKind;
  status: DeliveryStatus;
  bounce: Bounce | null;
  /** By people. */
  opens: number;
  clicks: number;
}

export interface SearchPage {
  emails: EmailSummary[];
  /** Continue after this; null: that was all. */
  next: string | null;
}

/** One page of a search reads so many recipients at most; an email can have a thousand. */
const maxDeliveries = 2_500;
/** An email with more recipients counts as several emails. */
const recipientsOfOne = 4;

/** An id is created a moment before its email is accepted, and clocks may be set. */
const slackMs = 60 * 60_000;

export async function searchEmails(db: Db, search: Search): Promise<SearchPage> {
  const { found, next } = await pagedSearch({
    read: (after, pageSize) => readEmails(db, search, after, pageSize),
    positionOf: ({ id }) => id,
    weightOf: ({ recipients }) => Math.max(1, recipients.length / recipientsOfOne),
    isWanted: (email) => isWanted(email, search),
    after: search.before ?? search.after ?? null,
    limit: search.limit,
    maxScanned: 2000,
    pageSize: 250,
  });
  return { emails: search.before === undefined ? found : found.toReversed(), next };
}

async function readEmails(
  db: Db,
  { orgId, onlyTest, since, until, before }: Search,
  edge: string | null,
  limit: number,
): Promise<{ rows: EmailSummary[]; isCut: boolean }> {
  const page = { [before === undefined ? 'after' : 'before']: edge, limit };
  const query = nearestFirst(db('emails').where({ org_id: orgId }), ['id', 'desc'], page);
  if (onlyTest) query.whereRaw('is_test');
  if (until !== undefined) query.where('id', '<=', lastIdOf(until + slackMs));
  if (since !== undefined) query.where('id', '>', lastIdOf(since - slackMs));
  const rows: { id: string }[] = await query.select(summaries.columns);
  const deliveries = await db('deliveries')
    .whereIn(
      'email_id',
      rows.map(({ id }) => id),
    )
    .orderBy([{ column: 'email_id', order: before === undefined ? 'desc' : 'asc' }, 'position'])
    .limit(maxDeliveries)
    .select('email_id', 'kind', 'recipient', 'status', 'bounce', 'open_count', 'click_count');
  const byEmail = Map.groupBy(deliveries, ({ email_id }) => email_id);
  // The last email that has deliveries may lack some; it and those after it are the next page's.
  const isCut = deliveries.length === maxDeliveries;
  const whole = isCut ? rows.findIndex(({ id }) => id === deliveries.at(-1).email_id) : rows.length;
  const found = rows.slice(0, whole).map((row) => summaryOf(row, byEmail.get(row.id) ?? []));
  return { rows: found, isCut };
}

// biome-ignore lint/suspicious/noExplicitAny: the driver's rows have no type
function summaryOf(row: any, deliveries: any[]): EmailSummary {
  const recipients = deliveries.map(({ recipient, kind, status, bounce, open_count, click_count }) => ({
    address: recipient,
    kind,
    status,
    bounce: bounce === null ? null : JSON.parse(bounce),
    opens: open_count,
    clicks: click_count,
  }));
  return { ...summaries.read(row), status: statusOf(recipients.map(({ status }) => status)), recipients };
}

function isWanted(email: EmailSummary, search: Search): boolean {
  const { status, to, from, tags, since, until } = search;
  if (search.withoutTest && email.isTest) return false;
  if (since !== undefined && email.createdAt < since) return false;
  if (until !== undefined && email.createdAt >= until) return false;
  if (status && !isOfOne(status) && ![email, ...email.recipients].some((each) => each.status === status))
    return false;
  if (!isCountedAs(email, search)) return false;
  if (to !== undefined && !email.recipients.some(({ address }) => isAt(address, to))) return false;
  if (from !== undefined && !isAt(email.from, from)) return false;
  if (search.contains && !hasWords(email, search.contains)) return false;
  if (!hasRecipient(email, search)) return false;
  if (search.tag !== undefined && !Object.entries(email.tags).flat().includes(search.tag)) return false;
  return Object.entries(tags).every(([name, value]) => email.tags[name] === value);
}

const waiting: DeliveryStatus[] = ['queued', 'deferred', 'sending'];

const ofOne = {
  waiting: ({ status }: FoundRecipient) => waiting.includes(status),
  opened: ({ opens }: FoundRecipient) => opens > 0,
  clicked: ({ clicks }: FoundRecipient) => clicks > 0,
};

const isOfOne = (status: string): status is keyof typeof ofOne => Object.hasOwn(ofOne, status);

function hasRecipient({ recipients }: EmailSummary, { status, contains }: Search): boolean {
  const { to } = contains ?? {};
  const isOf = status && isOfOne(status) ? ofOne[status] : null;
  if (to === undefined && isOf === null) return true;
  return recipients.some(
    (one) =>
      (isOf === null || isOf(one)) && (to === undefined || to.some((words) => has(one.address, words))),
  );
}

function isCountedAs({ keyId, recipients }: EmailSummary, wanted: Search): boolean {
  if (wanted.keyId !== undefined && keyId !== wanted.keyId) return false;
  const cause = Object.entries(wanted.bounce ?? {});
  if (cause.length === 0) return true;
  return recipients.some(
    ({ bounce }) => bounce && cause.every(([name, value]) => bounce[name as keyof Bounce] === value),
  );
}

function hasWords(email: EmailSummary, { from, subject, id }: NonNullable<Search['contains']>): boolean {
  if (id !== undefined && !has(email.id, id) && !has(email.messageId, id)) return false;
  if (subject !== undefined && !has(email.subject, subject)) return false;
  return from === undefined || has(email.from, from);
}

function has(text: string, words: string): boolean {
  return text.toLowerCase().includes(words.toLowerCase());
}

/** `wanted`: a normalized address, or a domain with its @. */
function isAt(text: string, wanted: string): boolean {
  const mailbox = parseMailbox(text);
  if (mailbox === null) return false;
  return wanted.startsWith('@') ? `@${mailbox.domain}` === wanted : compareKey(mailbox.address) === wanted;
}
