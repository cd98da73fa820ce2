/** Mailgun has three lists of suppressed addresses. We have one; the reason of an entry says in which of them it is. */
import { searchList, unsuppressAddress } from '../../accounts/suppression-list.ts';
import { compareKey } from '../../mail/address.ts';
import { type DialectCall, type DialectRoute, requireItem } from '../dialect.ts';
import { hostOf, requireDomain } from './mailgun-fields.ts';

const kinds = {
  bounces: { one: 'Bounced address', has: (reason: string) => reason.startsWith('hard bounce') },
  complaints: { one: 'Spam complaint', has: (reason: string) => reason === 'complaint' },
  unsubscribes: { one: 'Unsubscribed address', has: isOther },
};

type Kind = keyof typeof kinds;

function isOther(reason: string): boolean {
  return !kinds.bounces.has(reason) && !kinds.complaints.has(reason);
}

const grant = 'full_access';

export const mailgunSuppressionRoutes: DialectRoute[] = (Object.keys(kinds) as Kind[]).flatMap((kind) => [
  { route: `GET /v3/:domain/${kind}`, grant, respond: (call) => list(call, kind) },
  {
    route: `GET /v3/:domain/${kind}/:address`,
    grant,
    respond: async (call) => present(await find(call, kind), kind),
  },
  { route: `DELETE /v3/:domain/${kind}/:address`, grant, respond: (call) => remove(call, kind) },
]);

const maxLimit = 1000;

/** The order is that of the addresses; `address` is the last one of the page before. */
async function list(call: DialectCall, kind: Kind) {
  await requireDomain(call, call.params.domain!.toLowerCase());
  const { limit: wanted, address } = call.context.query;
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
  const base = `${hostOf(call)}${call.context.originalUrl.replace(/\?.*$/s, '')}`;
  const next = after ?? address ?? '';
  const url = `${base}?page=next&limit=${limit}&address=${encodeURIComponent(String(next))}`;
  return {
    items: items.map((item) => present(item, kind)),
    paging: { first: `${base}?limit=${limit}`, next: url },
  };
}

type Entry = Awaited<ReturnType<typeof find>>;

async function find({ store, orgId, params }: DialectCall, kind: Kind) {
  await requireDomain({ store, orgId }, params.domain!.toLowerCase());
  const found = await store.findSuppression(orgId, compareKey(params.address!));
  return requireItem(found && kinds[kind].has(found.reason) ? found : null, `address in ${kind}`);
}

function present(
  { address, reason, createdAt }: Pick<Entry, 'address' | 'reason' | 'createdAt'>,
  kind: Kind,
) {
  const created_at = new Date(createdAt).toUTCString().replace('GMT', 'UTC');
  if (kind === 'bounces') return { address, code: '550', error: reason, created_at };
  return kind === 'complaints' ? { address, created_at } : { address, tags: ['*'], created_at };
}

async function remove(call: DialectCall, kind: Kind) {
  const { address } = await find(call, kind);
  const { management, orgId, now } = call;
  await unsuppressAddress({ db: management.db, eventSignal: management.eventSignal, orgId, now }, address);
  return { message: `${kinds[kind].one} has been removed`, address };
}
