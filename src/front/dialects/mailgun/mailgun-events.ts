/**
 * Mailgun's events: ours, with its names. Its clients read pages until one is empty, so a page is empty only at the end. The
 * last segment of a page's URL is all that the call needs: the query, the direction, and a position between two events.
 */
import { z } from 'zod';
import { type DialectCall, knowParameters } from '#front/dialects/dialect.ts';
import { type EventSearch, eventPages, startOf } from '#front/dialects/event-pages.ts';
import { checked } from '#front/http/issues.ts';
import { parametersOf } from '#front/http/query.ts';
import type { EventRecord } from '#mail/record/rows/read-events.ts';
import { emailEventOf } from '#mail/webhooks/formats/email-event.ts';
import { mailgunEvent, mailgunTypes } from '#mail/webhooks/formats/mailgun-format.ts';
import { parseMailbox } from '#platform/values/address.ts';
import { Refusal } from '#platform/values/refusal.ts';
import { requirePathDomain, urlOf } from './mailgun-fields.ts';

const maxLimit = 300;

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
  const given = page === undefined ? parametersOf(call.context, query) : readCursor(page);
  // Clients repeat the search with the page, which has it already.
  knowParameters(call.context, Object.keys(query.shape));
  const {
    isPrevious = false,
    position,
    ...wanted
  } = searchOf(page === undefined ? checked(query, given) : checked(cursor, given));
  const isForward = wanted.isAscending !== isPrevious;
  const { since, until, limit: most, event } = wanted;
  const limit = Math.min(most, maxLimit);
  const search = { types: typesOf(event), since, until, isForward, position, firstSize: limit };
  const start = await startOf(call, search);
  const isWanted = matching(wanted);
  const { items, end } = await read(call, { ...search, position: start }, limit, (event) => {
    const item = isOf(event, domain) && mailgunEvent(emailEventOf(event));
    return item && isWanted(item) ? [item] : [];
  });
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

type Wanted = Omit<Search, 'isPrevious' | 'position'>;

/** In the order in which they are read. */
async function read(
  call: DialectCall,
  search: EventSearch & { position: number },
  limit: number,
  itemsOf: (event: EventRecord) => Item[],
) {
  const items: Item[] = [];
  let { position: end } = search;
  for await (const page of eventPages(call, search)) {
    for (const event of page.events) {
      items.push(...itemsOf(event));
      if (items.length === limit) return { items, end: event.position - (search.isForward ? 0 : 1) };
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
function isOf({ email }: EventRecord, domain: string): boolean {
  const sender = email && parseMailbox(email.from)?.domain;
  if (!sender) return false;
  return sender === domain || domain.endsWith(`.${sender}`) || sender.endsWith(`.${domain}`);
}
