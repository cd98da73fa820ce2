/** Mailgun's events: ours, with its names. A page's `next` is a URL whose last segment is all that the next call needs. */
import { z } from 'zod';
import { parseMailbox } from '../../mail/address.ts';
import { Refusal } from '../../mail/refusal.ts';
import { emailEventOf } from '../../webhooks/formats/email-event.ts';
import { mailgunEvent, mailgunTypes } from '../../webhooks/formats/mailgun-format.ts';
import { check, type DialectCall } from '../dialect.ts';
import type { StoredEvent } from '../dialect-store.ts';
import { requirePathDomain, urlOf } from './mailgun-fields.ts';

const maxLimit = 300;
/** Reads of the database for one call: Mailgun's clients take an empty page for the end. */
const maxReads = 50;
/** Events are read in the order in which they were stored, which is only roughly that of their times. */
const skewMs = 60_000;

/** Seconds since the epoch, or a date of RFC 2822. */
const time = z.string().transform((text, context) => {
  const at = /^\d{1,12}(\.\d{1,9})?$/.test(text) ? Number(text) * 1000 : Date.parse(text);
  if (!Number.isNaN(at)) return at;
  context.addIssue({ code: 'custom', message: 'must be seconds since 1970, or a date' });
  return z.NEVER;
});

const text = z.string().max(500);
const several = (word: string) => z.union([text, z.array(text).transform((list) => list.join(` ${word} `))]);

const query = z.object({
  begin: time.optional(),
  end: time.optional(),
  ascending: text.optional(),
  limit: z.coerce.number().int().min(1).default(100),
  event: several('OR').optional(),
  tags: several('AND').optional(),
  recipient: text.optional(),
  'message-id': text.optional(),
  severity: text.optional(),
  /** Of a later page: where the one before ended. */
  position: z.number().int().min(0).optional(),
});

type Search = Omit<z.output<typeof query>, 'begin' | 'end' | 'ascending'> & {
  from: number;
  to: number;
  isAscending: boolean;
};

export async function listEvents(call: DialectCall) {
  const domain = await requirePathDomain(call);
  const { page } = call.params;
  const given = page === undefined ? { ...call.context.query, position: undefined } : readCursor(page);
  const wanted = searchOf(check(query, given));
  const start = wanted.position ?? (await startOf(call, wanted));
  const { items, position } = await read(call, wanted, start, domain);
  const base = urlOf(call, call.context.originalUrl.replace(/\/events\b.*$/s, '/events'));
  const url = (at: number) => `${base}/${writeCursor({ ...given, position: at })}`;
  return { items, paging: { first: url(start), next: url(position) } };
}

function searchOf({ begin, end, ascending, ...rest }: z.output<typeof query>): Search {
  const isAscending =
    ascending === undefined
      ? begin !== undefined && (end === undefined || begin <= end)
      : /^(yes|true)$/i.test(ascending);
  const [from = 0, to = Number.MAX_SAFE_INTEGER] = isAscending ? [begin, end] : [end, begin];
  return { ...rest, isAscending, from, to };
}

async function startOf({ store, orgId }: DialectCall, { isAscending, from, to }: Search): Promise<number> {
  if (isAscending) return store.positionBefore(orgId, from);
  if (to === Number.MAX_SAFE_INTEGER) return to;
  return (await store.positionBefore(orgId, to + 2 * skewMs)) + 1;
}

function writeCursor(given: object): string {
  return Buffer.from(JSON.stringify(given)).toString('base64url');
}

function readCursor(cursor: string): object {
  try {
    return Object(JSON.parse(Buffer.from(cursor, 'base64url').toString()));
  } catch {
    const message = 'The page is not valid. Take it from the paging of an earlier response.';
    throw new Refusal('BAD_REQUEST', message);
  }
}

type Item = ReturnType<typeof mailgunEvent>;

async function read({ store, orgId }: DialectCall, wanted: Search, start: number, domain: string) {
  const { isAscending, from, to } = wanted;
  const limit = Math.min(wanted.limit, maxLimit);
  const types = typesOf(wanted.event);
  const items: Item[] = [];
  let position = start;
  for (let reads = 0; types.length > 0 && reads < maxReads && items.length < limit; reads += 1) {
    const rest = { orgId, limit: limit - items.length, types };
    const page = await (isAscending
      ? store.readEvents({ ...rest, after: position })
      : store.readEventsBefore({ ...rest, before: position }));
    const found = page.events.filter((event) => event.at >= from && event.at <= to && isOf(event, domain));
    items.push(...found.map((event) => mailgunEvent(emailEventOf(event))).filter(matching(wanted)));
    position = page.position;
    const last = page.events.at(-1)?.at ?? (isAscending ? 0 : to);
    if (!page.isMore || (isAscending ? last > to + skewMs : last < from - skewMs)) break;
  }
  return { items, position };
}

function typesOf(event: string | undefined): string[] {
  const isWanted = condition(event);
  return Object.entries(mailgunTypes).flatMap(([type, name]) => (isWanted([name]) ? [type] : []));
}

/** Mailgun's `a OR b`, `a AND b`. */
function condition(expression: string | undefined): (words: string[]) => boolean {
  if (expression === undefined || expression.trim() === '') return () => true;
  const clean = expression.replace(/["()]/g, '').trim();
  const choices = clean.split(/\s+OR\s+/i).map((choice) => choice.split(/\s+AND\s+/i));
  return (words) => choices.some((all) => all.every((word) => words.includes(word)));
}

function matching({ tags, recipient, 'message-id': messageId, severity }: Search): (item: Item) => boolean {
  const hasTags = condition(tags);
  const id = messageId?.replace(/^<|>$/g, '');
  return (item) =>
    hasTags(item.tags) &&
    (recipient === undefined || item.recipient.toLowerCase() === recipient.toLowerCase()) &&
    (id === undefined || item.message.headers['message-id'] === id) &&
    (severity === undefined || ('severity' in item ? item.severity : undefined) === severity);
}

/** A domain for mail is often below the sender's own: the event of `a@example.com` is also one of `mg.example.com`. */
function isOf({ email }: StoredEvent, domain: string): boolean {
  const sender = email && parseMailbox(email.from)?.domain;
  if (!sender) return false;
  return sender === domain || domain.endsWith(`.${sender}`) || sender.endsWith(`.${domain}`);
}
