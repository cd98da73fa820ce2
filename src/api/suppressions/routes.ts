/** /api/public/suppressions: addresses that an organization does not write to any more. As CSV: csv.ts. */
import type { Context } from 'koa';
import { iso } from '../../base/clock.ts';
import {
  addSuppression,
  findSuppression,
  removeSuppression,
  type Suppression,
  searchSuppressions,
  suppressionOf,
} from '../../db/accounts/suppressions.ts';
import { compareKey, domainOf } from '../../mail/address.ts';
import { Refusal } from '../../mail/refusal.ts';
import {
  type AddManagementRoutes,
  type Management,
  management,
  readJson,
  requireFound,
} from '../management.ts';
import { readQuery } from '../query.ts';
import { cursorOf, newSuppression, type SuppressionOut, suppressionsQuery } from './schema.ts';

export const addSuppressionRoutes: AddManagementRoutes = (router, inBounds, parts) => {
  const one = '/suppressions/:address';
  router.get(
    '/suppressions',
    inBounds,
    management(parts, (context, orgId) => list(context, orgId, parts)),
  );
  router.post(
    '/suppressions',
    inBounds,
    management(parts, (context, orgId) => add(context, orgId, parts)),
  );
  router.get(
    one,
    inBounds,
    management(parts, (context, orgId) => find(context, orgId, parts)),
  );
  router.delete(
    one,
    inBounds,
    management(parts, (context, orgId) => remove(context, orgId, parts)),
  );
};

async function list(context: Context, orgId: string, { db }: Management): Promise<object> {
  const { search, after = null, limit } = readQuery(context, suppressionsQuery);
  // As the keys are written that it is compared with.
  const part = search?.trim().normalize('NFC').toLowerCase() ?? null;
  const { found, next } = await searchSuppressions(db, { orgId, part, after, limit });
  return { suppressions: found.map(present), next: next === null ? null : cursorOf(next) };
}

async function add(context: Context, orgId: string, { db, clock, eventSignal }: Management): Promise<object> {
  const { address, reason } = await readJson(context, newSuppression);
  const added = await addSuppression(db, suppressionOf(orgId, address, reason), clock.now());
  if (added) eventSignal.ring();
  const kept = requireFound(await findSuppression(db, orgId, compareKey(address)), 'suppression');
  return { added, suppression: present(kept) };
}

function keyIn({ params: { address } }: Context): string {
  if (domainOf(address) !== null) return compareKey(address);
  throw new Refusal('BAD_REQUEST', 'The address in the path is not an email address.');
}

async function find(context: Context, orgId: string, { db }: Management): Promise<object> {
  return {
    suppression: present(requireFound(await findSuppression(db, orgId, keyIn(context)), 'suppression')),
  };
}

async function remove(
  context: Context,
  orgId: string,
  { db, clock, eventSignal }: Management,
): Promise<object> {
  requireFound((await removeSuppression(db, orgId, keyIn(context), clock.now())) || null, 'suppression');
  eventSignal.ring();
  return {};
}

function present({ address, reason, createdAt }: Suppression): SuppressionOut {
  return { address, reason, createdAt: iso(createdAt) };
}
