/** Mailgun's events: ours, with its names. A page's `next` is a URL whose last segment is all that the next call needs. */
import { z } from 'zod';
import { parseMailbox } from '../../mail/address.ts';
import { Refusal } from '../../mail/refusal.ts';
import { emailEventOf } from '../../webhooks/formats/email-event.ts';
import { mailgunEvent, mailgunTypes } from '../../webhooks/formats/mailgun-format.ts';
import { check, type DialectCall } from '../dialect.ts';
import type { StoredEvent } from '../dialect-store.ts';
import { hostOf, requireDomain } from './mailgun-fields.ts';

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

const query = z.object({
  begin: time.optional(),
  end: time.optional(),
  ascending: z.string().optional(),
  limit: z.coerce.number().int().min(1).default(100),
  event: z.union([text, z.array(text).transform((list) => list.join(' OR '))]).optional(),
  tags: z.union([text, z.array(text).transform((list) => list.join(' AND '))]).optional(),
  recipient: text.optional(),
  'message-id': text.optional(),
  severity: text.optional(),
});

const search = z.object({
  from: z.number().optional(),
  to: z.number().optional(),
  ascending: z.boolean(),
  limit: z.number().int().min(1).max(maxLimit),
  event: text.optional(),
  tags: text.optional(),
  recipient: text.optional(),
  messageId: text.optional(),
  severity: text.optional(),
  position: z.number().int().min(0),
});

type Search = z.output<typeof search>;

export async function listEvents(call: DialectCall) {
  const domain = call.params.domain!.toLowerCase();
  await requireDomain(call, domain);
  const { page } = call.params;
  const wanted = page === undefined ? await newSearch(call) : readCursor(page);
  const { items, position } = await read(call, wanted, domain);
  const base = `${hostOf(call)}${call.context.originalUrl.replace(/\/events\b.*$/s, '/events')}`;
  const url = (at: number) => `${base}/${writeCursor({ ...wanted, position: at })}`;
  return { items, paging: { first: url(wanted.position), next: url(position) } };
}

async function newSearch({ context, store, orgId }: DialectCall): Promise<Search> {
  const {
    begin,
    end,
    ascending,
    limit,
    'message-id': messageId,
    ...filters
  } = check(query, { ...context.query });
  const isAscending =
    ascending === undefined
      ? begin !== undefined && (end === undefined || begin <= end)
      : /^(yes|true)$/i.test(ascending);
  const [from, to] = isAscending ? [begin, end] : [end, begin];
  const start = isAscending
    ? await store.positionBefore(orgId, from ?? 0)
    : to === undefined
      ? Number.MAX_SAFE_INTEGER
      : (await store.positionBefore(orgId, to + 2 * skewMs)) + 1;
  return {
    ...filters,
    ...(messageId !== undefined && { messageId }),
    ...(from !== undefined && { from }),
    ...(to !== undefined && { to }),
    ascending: isAscending,
    limit: Math.min(limit, maxLimit),
    position: start,
  };
}

function writeCursor(wanted: Search): string {
  return Buffer.from(JSON.stringify(wanted)).toString('base64url');
}

function readCursor(cursor: string): Search {
  try {
    return search.parse(JSON.parse(Buffer.from(cursor, 'base64url').toString()));
  } catch {
    throw new Refusal(
      'BAD_REQUEST',
      'The page is not valid. Take it from the paging of an earlier response.',
    );
  }
}

type Item = ReturnType<typeof mailgunEvent>;

async function read({ store, orgId }: DialectCall, wanted: Search, domain: string) {
  const { ascending, limit, from = 0, to = Number.MAX_SAFE_INTEGER } = wanted;
  const types = typesOf(wanted.event);
  const items: Item[] = [];
  let { position } = wanted;
  for (let reads = 0; types.length > 0 && reads < maxReads && items.length < limit; reads += 1) {
    const rest = { orgId, limit: limit - items.length, types };
    const page = await (ascending
      ? store.readEvents({ ...rest, after: position })
      : store.readEventsBefore({ ...rest, before: position }));
    const found = page.events.filter((event) => event.at >= from && event.at <= to && isOf(event, domain));
    items.push(...found.map((event) => mailgunEvent(emailEventOf(event))).filter(matching(wanted)));
    position = page.position;
    const last = page.events.at(-1)?.at ?? (ascending ? 0 : to);
    if (!page.isMore || (ascending ? last > to + skewMs : last < from - skewMs)) break;
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

function matching({ tags, recipient, messageId, severity }: Search): (item: Item) => boolean {
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
