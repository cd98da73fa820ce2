/** Mailgun has three lists of suppressed addresses. We have one; the reason of an entry says in which of them it is. */
import { z } from 'zod';
import { searchList, suppressAll, unsuppressAddress } from '../../accounts/suppression-list.ts';
import { newSuppression } from '../../api/suppressions/schema.ts';
import { compareKey } from '../../mail/address.ts';
import { Refusal } from '../../mail/refusal.ts';
import { check, type DialectCall, type DialectRoute, requireItem } from '../dialect.ts';
import { Form } from '../form.ts';
import { requirePathDomain, urlOf } from './mailgun-fields.ts';

const kinds = {
  bounces: {
    one: 'Bounced address',
    reason: (error: string) => `hard bounce: ${error || 'unknown'}`,
    has: (reason: string) => reason.startsWith('hard bounce'),
  },
  complaints: {
    one: 'Spam complaint',
    reason: () => 'complaint',
    has: (reason: string) => reason === 'complaint',
  },
  unsubscribes: {
    one: 'Unsubscribed address',
    reason: () => 'unsubscribed',
    has: (reason: string) => !kinds.bounces.has(reason) && !kinds.complaints.has(reason),
  },
};

type Kind = keyof typeof kinds;

const grant = 'full_access';

export const mailgunSuppressionRoutes: DialectRoute[] = (Object.keys(kinds) as Kind[]).flatMap(
  (kind): DialectRoute[] => {
    const path = `/v3/:domain/${kind}`;
    const one = `${path}/:address`;
    return [
      { route: `GET ${path}`, grant, respond: (call) => list(call, kind) },
      { route: `POST ${path}`, grant, hasBody: 'any', respond: (call) => add(call, kind) },
      { route: `GET ${one}`, grant, respond: async (call) => present(await find(call, kind), kind) },
      { route: `DELETE ${one}`, grant, respond: (call) => remove(call, kind) },
    ];
  },
);

const maxLimit = 1000;

/** The order is that of the addresses; `address` is the last one of the page before. */
async function list(call: DialectCall, kind: Kind) {
  await requirePathDomain(call);
  const { limit: wanted, address, page: direction = 'next' } = call.context.query;
  if (direction !== 'next')
    throw new Refusal('BAD_REQUEST', 'page: only the next page can be read; begin with the first one.');
  const limit = Math.min(Math.max(Number(wanted) || 100, 1), maxLimit);
  const items = [];
  let after = typeof address === 'string' && address !== '' ? compareKey(address) : null;
  do {
    const page = await searchList(call.management.db, '', {
      orgId: call.orgId,
      after,
      limit: limit - items.length,
    });
    items.push(...page.found.filter(({ reason }) => kinds[kind].has(reason)));
    after = page.next;
  } while (after !== null && items.length < limit);
  const base = urlOf(call, call.context.originalUrl.replace(/\?.*$/s, ''));
  // Clients read pages until one is empty.
  const last = after ?? items.at(-1)?.address ?? address ?? '';
  const url = (to: string) => `${base}?page=${to}&limit=${limit}&address=${encodeURIComponent(String(last))}`;
  return {
    items: items.map((item) => present(item, kind)),
    // Ruby's client needs each of them.
    paging: {
      first: `${base}?limit=${limit}`,
      next: url('next'),
      previous: url('previous'),
      last: url('last'),
    },
  };
}

const entry = z.object({
  address: newSuppression.shape.address,
  error: z.string().nullish(),
});

/** As a form or as JSON, one or several. Mailgun forgets the old entry of an address that is on a list; we keep it. */
async function add(call: DialectCall, kind: Kind) {
  await requirePathDomain(call);
  const { body } = call;
  const given = body instanceof Form ? { address: body.one('address'), error: body.one('error') } : body;
  const entries = check(z.array(entry).min(1).max(maxLimit), [given].flat());
  await suppressAll(
    changeOf(call),
    entries.map(({ address, error }) => ({ address, reason: oneLine(kinds[kind].reason(error ?? '')) })),
  );
  const address = entries[0]!.address;
  return Array.isArray(given)
    ? { message: `${entries.length} addresses have been added to the ${kind} table` }
    : { message: `Address has been added to the ${kind} table`, address };
}

const maxReason = 200;

function oneLine(text: string): string {
  return text
    .replace(/\p{C}+/gu, ' ')
    .slice(0, maxReason)
    .toWellFormed();
}

type Entry = Awaited<ReturnType<typeof find>>;

async function find(call: DialectCall, kind: Kind) {
  await requirePathDomain(call);
  const { store, orgId, params } = call;
  const found = await store.findSuppression(orgId, compareKey(params.address!));
  return requireItem(found && kinds[kind].has(found.reason) ? found : null, `address in ${kind}`);
}

function present(
  { address, reason, createdAt }: Pick<Entry, 'address' | 'reason' | 'createdAt'>,
  kind: Kind,
) {
  const created_at = new Date(createdAt).toUTCString().replace('GMT', 'UTC');
  const more = { bounces: { code: '550', error: reason }, complaints: {}, unsubscribes: { tags: ['*'] } };
  return { address, ...more[kind], created_at };
}

async function remove(call: DialectCall, kind: Kind) {
  const { address } = await find(call, kind);
  await unsuppressAddress(changeOf(call), address);
  return { message: `${kinds[kind].one} has been removed`, address };
}

function changeOf({ management: { db, eventSignal }, orgId, now }: DialectCall) {
  return { db, eventSignal, orgId, now };
}
