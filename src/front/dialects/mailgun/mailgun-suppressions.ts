/**
 * Mailgun has three lists of suppressed addresses. We have one for all mail and one for each stream; the reason of an entry says in
 * which of Mailgun's it is. People unsubscribe there from all mail (`*`) or from tags: here, from the streams that they name, and
 * from all mail if they name none. An address has one item with all its tags.
 */
import { z } from 'zod';
import type { SuppressionRecord } from '#accounts/rows/suppressions.ts';
import { type ListEntry, originOf, replyIn } from '#accounts/suppression-list.ts';
import {
  type DialectCall,
  type DialectRoute,
  plainAddress,
  readParameters,
  requireItem,
  scalarText,
} from '#front/dialects/dialect.ts';
import { streamNames } from '#front/dialects/dialect-streams.ts';
import {
  bounceOf,
  findSuppressed,
  type ListCall,
  listSuppressed,
  suppressAll,
  unsuppress,
} from '#front/dialects/dialect-suppressions.ts';
import { Form } from '#front/dialects/form.ts';
import { formBody, jsonBody, jsonOrForm, noBody } from '#front/http/body-limits.ts';
import { checked } from '#front/http/issues.ts';
import { requirePathDomain, urlOf } from './mailgun-fields.ts';

const kinds = {
  bounces: {
    origin: 'bounce',
    one: 'Bounced address',
    reason: (error: string) => `hard bounce: ${error || 'unknown'}`,
  },
  complaints: { origin: 'complaint', one: 'Spam complaint', reason: () => 'complaint' },
  unsubscribes: { origin: 'manual', one: 'Unsubscribed address', reason: () => 'unsubscribed' },
} as const;

type Kind = keyof typeof kinds;

const grant = 'full_access';

const entriesBody = jsonOrForm(
  jsonBody({ largest: 1024 * 1024, members: 10_000 }),
  formBody({ largest: 64 * 1024, fields: 100 }),
);

export const mailgunSuppressionRoutes: DialectRoute[] = (Object.keys(kinds) as Kind[]).flatMap(
  (kind): DialectRoute[] => {
    const path = `/v3/:domain/${kind}`;
    const one = `${path}/:address`;
    return [
      { route: `GET ${path}`, grant, respond: (call) => list(call, kind) },
      { route: `POST ${path}`, grant, body: entriesBody, respond: (call) => add(call, kind) },
      { route: `GET ${one}`, grant, respond: async (call) => present(await find(call, kind), kind) },
      { route: `DELETE ${one}`, grant, body: noBody, respond: (call) => remove(call, kind) },
    ];
  },
);

const maxLimit = 1000;

const pageQuery = z.object({
  limit: z.string().optional(),
  page: z.enum(['first', 'next', 'previous', 'last']).default('next'),
  /** After, or before, which the page is. */
  address: z.string().optional(),
});

/** The order is that of the addresses. */
async function list(call: DialectCall, kind: Kind) {
  await requirePathDomain(call);
  const { limit: wanted, page, address: edge } = readParameters(call.context, pageQuery);
  const limit = Math.min(Math.max(Math.trunc(Number(wanted)) || 100, 1), maxLimit);
  const found = await itemsOf(call, {
    ...(page === 'next' && edge && { after: edge }),
    ...(page === 'previous' && { before: edge ?? '' }),
    ...(page === 'last' && { before: null }),
    limit,
    origin: kinds[kind].origin,
  });
  const base = urlOf(call, call.context.originalUrl.split('?', 1)[0]!);
  // Clients read pages until one is empty.
  const url = (to: string, address = edge ?? '') =>
    `${base}?${new URLSearchParams({ page: to, limit: String(limit), address })}`;
  return {
    items: found.map((item) => present(item, kind)),
    paging: {
      first: `${base}?limit=${limit}`,
      next: url('next', found.at(-1)?.[0].address),
      previous: url('previous', found[0]?.[0].address),
      last: url('last', ''),
    },
  };
}

/** The entries of one address. */
type Item = [SuppressionRecord, ...SuppressionRecord[]];

/** Each list gives as many as are wanted, of which those that come first, or last, are the page. */
async function itemsOf(call: DialectCall, wanted: Parameters<typeof listSuppressed>[1]): Promise<Item[]> {
  const pages = await Promise.all((await listsOf(call)).map((list) => listSuppressed(list, wanted)));
  const byKey = Map.groupBy(
    pages.flatMap(({ found }) => found),
    ({ addressKey }) => addressKey,
  );
  const items = [...byKey]
    .sort(([one], [other]) => Buffer.compare(Buffer.from(one), Buffer.from(other)))
    .map(([, entries]) => entries as Item);
  return wanted.before === undefined ? items.slice(0, wanted.limit) : items.slice(-wanted.limit);
}

async function listsOf(call: DialectCall): Promise<ListCall[]> {
  return [null, ...(await streamNames(call))].map((stream) => ({ ...call, stream }));
}

function isIn(found: SuppressionRecord, kind: Kind): boolean {
  return originOf(found) === kinds[kind].origin;
}

/** A code of SMTP, as text or as a number. */
const code = z
  .union([z.string(), z.number()])
  .transform(String)
  .refine((text) => /^(?:[245]\d\d)?$/.test(text), 'must be the code of an SMTP reply, such as 550')
  .transform(Number);

const entry = z.object({
  address: plainAddress,
  code: code.nullish(),
  error: scalarText.nullish(),
  tag: scalarText.nullish(),
  tags: z.array(scalarText).max(100).nullish(),
});

/** As a form or as JSON, one or several. Mailgun forgets the old entry of an address that is on a list; we keep it. */
async function add(call: DialectCall, kind: Kind) {
  await requirePathDomain(call);
  const { body } = call;
  const given =
    body instanceof Form
      ? {
          address: body.one('address'),
          code: body.one('code'),
          error: body.one('error'),
          tags: [...body.all('tag'), ...body.all('tags')],
        }
      : body;
  const entries = checked(z.array(entry).min(1).max(maxLimit), [given].flat());
  const known = new Set(kind === 'unsubscribes' ? await streamNames(call) : []);
  const byStream = new Map<string | null, ListEntry[]>();
  for (const one of entries) {
    const tags = tagsOf(one);
    const streams = [...new Set(tags)].filter((tag) => known.has(tag));
    const isOfAll = streams.length === 0 || tags.includes('*');
    for (const stream of isOfAll ? [null] : streams)
      byStream.set(stream, [...(byStream.get(stream) ?? []), entryOf(one, kind)]);
  }
  for (const [stream, list] of byStream) await suppressAll({ ...call, stream }, list);
  return Array.isArray(given)
    ? { message: `${entries.length} addresses have been added to the ${kind} table` }
    : { message: `Address has been added to the ${kind} table`, address: entries[0]!.address };
}

const tagsOf = ({ tag, tags }: z.output<typeof entry>) => [...(tag ? [tag] : []), ...(tags ?? [])];

const maxReason = 200;
const maxError = 1000;

function entryOf({ address, code, error }: z.output<typeof entry>, kind: Kind): ListEntry {
  const text = oneLine(error ?? '', maxError);
  const reason = oneLine(kinds[kind].reason(text), maxReason);
  if (kind !== 'bounces') return { address, reason };
  return { address, reason, reply: { ...replyIn(text), ...(code && { code }) } };
}

function oneLine(text: string, maxLength: number): string {
  return text
    .replace(/\p{C}+/gu, ' ')
    .slice(0, maxLength)
    .toWellFormed();
}

const tagQuery = z.object({ tag: z.string().optional() });

/** With a tag, the entry of that alone. */
async function find(call: DialectCall, kind: Kind): Promise<Item> {
  await requirePathDomain(call);
  const { tag } = readParameters(call.context, tagQuery);
  const lists = (await listsOf(call)).filter(({ stream }) => tag === undefined || tag === (stream ?? '*'));
  const found = await Promise.all(lists.map((list) => findSuppressed(list, call.params.address!)));
  const [first, ...others] = found.filter((entry) => entry !== null && isIn(entry, kind));
  return [requireItem(first ?? null, `address in ${kind}`), ...others.map((entry) => entry!)];
}

function present(item: Item, kind: Kind) {
  const [entry] = item;
  const created_at = new Date(entry.createdAt).toUTCString().replace('GMT', 'UTC');
  const { code, text: error } = bounceOf(entry);
  const tags = item.map(({ stream }) => stream || '*');
  const more = { bounces: { code, error }, complaints: {}, unsubscribes: { tags } };
  return { address: entry.address, ...more[kind], created_at };
}

async function remove(call: DialectCall, kind: Kind) {
  const item = await find(call, kind);
  for (const { address, stream } of item) await unsuppress({ ...call, stream }, address);
  return { message: `${kinds[kind].one} has been removed`, address: item[0].address };
}
