/**
 * Mailgun's events: ours, with its names. Its clients read pages until one is empty, so a page is empty only at the end. The
 * last segment of a page's URL is all that the call needs: the query, the direction, and a position between two events.
 */
import { z } from 'zod';
import { parseMailbox } from '../../mail/address.ts';
import { Refusal } from '../../mail/refusal.ts';
import { emailEventOf } from '../../webhooks/formats/email-event.ts';
import { mailgunEvent, mailgunTypes } from '../../webhooks/formats/mailgun-format.ts';
import { check, type DialectCall } from '../dialect.ts';
import type { StoredEvent } from '../dialect-store.ts';
import { requirePathDomain, urlOf } from './mailgun-fields.ts';

const maxLimit = 300;
/** Reads of the database for one call, each of which looks at 2,000 events at most. */
const maxReads = 200;
const maxPageSize = 500;
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
  from: text.optional(),
  to: text.optional(),
  subject: text.optional(),
});

const cursor = query.extend({
  /** The events up to this one are on one side, the later ones on the other. */
  position: z.number().int().min(0).optional(),
  /** The page ends there, in the order of the list. */
  isPrevious: z.boolean().optional(),
});

type Search = Omit<z.output<typeof cursor>, 'begin' | 'end' | 'ascending'> & {
  since: number;
  until: number;
  isAscending: boolean;
};

export async function listEvents(call: DialectCall) {
  const domain = await requirePathDomain(call);
  const { page } = call.params;
  const given = page === undefined ? { ...call.context.query } : readCursor(page);
  const {
    isPrevious = false,
    position,
    ...wanted
  } = searchOf(page === undefined ? check(query, given) : check(cursor, given));
  const isForward = wanted.isAscending !== isPrevious;
  const start = position ?? (await startOf(call, isForward, wanted));
  const { items, end } = await read(call, wanted, { start, isForward, domain });
  const base = urlOf(call, call.context.originalUrl.replace(/^([^?]*\/events)\b.*$/s, '$1'));
  const url = (change: object) =>
    `${base}/${writeCursor({ ...given, position: undefined, isPrevious: false, ...change })}`;
  const [before, after] = isPrevious ? [end, start] : [start, end];
  return {
    items: isPrevious ? items.toReversed() : items,
    paging: {
      first: url({}),
      previous: url({ position: before, isPrevious: true }),
      next: url({ position: after }),
      last: url({ isPrevious: true }),
    },
  };
}

function searchOf({ begin, end, ascending, ...rest }: z.output<typeof cursor>): Search {
  const isAscending =
    ascending === undefined
      ? begin !== undefined && (end === undefined || begin <= end)
      : /^(yes|true)$/i.test(ascending);
  const [since = 0, until = Number.MAX_SAFE_INTEGER] = isAscending ? [begin, end] : [end, begin];
  return { ...rest, isAscending, since, until };
}

async function startOf(
  { store, orgId }: DialectCall,
  isForward: boolean,
  { since, until }: Pick<Search, 'since' | 'until'>,
): Promise<number> {
  if (isForward) return store.positionBefore(orgId, since);
  return until === Number.MAX_SAFE_INTEGER ? until : store.positionBefore(orgId, until + 2 * skewMs);
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

interface Range {
  start: number;
  isForward: boolean;
  domain: string;
}

interface Limit {
  limit: number;
}

type Wanted = Omit<Search, 'isPrevious' | 'position'>;

/** In the order in which they are read. */
async function read(call: DialectCall, wanted: Wanted, range: Range) {
  const limit = Math.min(wanted.limit, maxLimit);
  const isWanted = matching(wanted);
  const items: Item[] = [];
  let { start: end } = range;
  for await (const page of pagesOf(call, wanted, { ...range, limit })) {
    for (const event of page.events) {
      const item = mailgunEvent(emailEventOf(event));
      if (isWanted(item)) items.push(item);
      if (items.length === limit) return { items, end: event.position - (range.isForward ? 0 : 1) };
    }
    ({ end } = page);
    if (page.isLast) return { items, end };
  }
  if (items.length > 0) return { items, end };
  // An empty page would say that there is no such event.
  throw new Refusal(
    'BAD_REQUEST',
    'There are too many events to search. Narrow the search with begin and end.',
  );
}

/** `end`: where the next page starts. */
async function* pagesOf(call: DialectCall, wanted: Wanted, range: Range & Limit) {
  const { since, until } = wanted;
  const { start, limit, isForward, domain } = range;
  const types = typesOf(wanted.event);
  let position = start;
  for (let reads = 0, size = limit; reads < maxReads; reads += 1, size = Math.min(2 * size, maxPageSize)) {
    const page = await readPage(call, { types, limit: size, position, isForward });
    const last = page.events.at(-1)?.at ?? (isForward ? 0 : until);
    const isBeyond = isForward ? last > until + skewMs : last < since - skewMs;
    const events = page.events.filter(
      (event) => event.at >= since && event.at <= until && isOf(event, domain),
    );
    yield { events, end: page.end, isLast: types.length === 0 || !page.isMore || isBeyond };
    position = page.end;
  }
}

async function readPage(
  { store, orgId }: DialectCall,
  { types, limit, position, isForward }: { types: string[]; position: number; isForward: boolean } & Limit,
) {
  if (isForward) {
    const page = await store.readEvents({ orgId, limit, types, after: position });
    return { ...page, end: page.position };
  }
  const page = await store.readEventsBefore({ orgId, limit, types, before: position + 1 });
  return { ...page, end: Math.max(page.position - 1, 0) };
}

function typesOf(event: string | undefined): string[] {
  const isWanted = condition(event);
  return Object.entries(mailgunTypes).flatMap(([type, name]) => (isWanted([name]) ? [type] : []));
}

/** Mailgun's `a OR b`, `a AND b`. */
function condition(expression: string | undefined): (words: string[]) => boolean {
  if (expression === undefined || expression.trim() === '') return () => true;
  const clean = expression.replace(/["()]/g, '').replace(/\s+/g, ' ').trim();
  const choices = clean.split(/ OR /i).map((choice) => choice.split(/ AND /i));
  return (words) => choices.some((all) => all.every((word) => words.includes(word)));
}

function matching(wanted: Wanted): (item: Item) => boolean {
  const { tags, recipient, 'message-id': messageId, severity } = wanted;
  const hasTags = condition(tags);
  const has = (name: 'from' | 'to' | 'subject', { headers }: Item['message']) =>
    headers[name].toLowerCase().includes((wanted[name] ?? '').toLowerCase());
  const id = messageId?.replace(/^<|>$/g, '');
  return (item) =>
    hasTags(item.tags) &&
    has('from', item.message) &&
    has('to', item.message) &&
    has('subject', item.message) &&
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
