/** Resend's suppressions. The address is the id: with it our list goes on, and calls on one suppression take either in Resend. */
import { z } from 'zod';
import type { SuppressionRecord } from '#accounts/rows/suppressions.ts';
import { originOf } from '#accounts/suppression-list.ts';
import {
  type DialectCall,
  type DialectRoute,
  plainAddress,
  readParameters,
  requireItem,
} from '#front/dialects/dialect.ts';
import {
  findSuppressed,
  listSuppressed,
  suppress,
  unsuppress,
} from '#front/dialects/dialect-suppressions.ts';
import { noBody, smallJson } from '#front/http/body-limits.ts';
import { checked } from '#front/http/issues.ts';
import { iso } from '#platform/base/clock.ts';
import { listQuery } from './resend-lists.ts';

const grant = 'full_access';

export const resendSuppressionRoutes: DialectRoute[] = [
  { route: 'POST /suppressions', grant, body: smallJson, respond: add },
  { route: 'GET /suppressions', grant, respond: list },
  { route: 'POST /suppressions/batch/add', grant, body: smallJson, respond: addAll },
  { route: 'POST /suppressions/batch/remove', grant, body: smallJson, respond: removeAll },
  { route: 'GET /suppressions/:address', grant, respond: async (call) => present(await find(call)) },
  { route: 'DELETE /suppressions/:address', grant, body: noBody, respond: remove },
];

async function add(call: DialectCall) {
  const { email } = checked(z.object({ email: plainAddress }), call.body);
  call.context.status = 201;
  await suppress(call, email);
  return { object: 'suppression', id: email };
}

const origins = z.object({ origin: z.enum(['bounce', 'complaint', 'manual']).optional() });

async function list(call: DialectCall) {
  const { origin } = readParameters(call.context, origins);
  const { found, hasMore } = await listSuppressed(call, { ...listQuery(call), origin });
  return { object: 'list', has_more: hasMore, data: found.map(present) };
}

function present(found: SuppressionRecord) {
  const { address: email, createdAt } = found;
  return {
    object: 'suppression',
    id: email,
    email,
    origin: originOf(found),
    source_id: null,
    created_at: iso(createdAt),
  };
}

async function find(call: DialectCall): Promise<SuppressionRecord> {
  return requireItem(await findSuppressed(call, call.params.address!), 'suppression');
}

async function remove(call: DialectCall) {
  const { address: id } = await find(call);
  return { object: 'suppression', id, deleted: await unsuppress(call, id) };
}

const addresses = z.array(plainAddress).min(1).max(100);

async function addAll(call: DialectCall) {
  const { emails } = checked(z.object({ emails: addresses }), call.body);
  for (const email of emails) await suppress(call, email);
  return { data: emails.map((id) => ({ object: 'suppression', id })) };
}

const removal = z.union([z.object({ emails: addresses }), z.object({ ids: addresses })], {
  error: 'emails or ids is required: 1 to 100 addresses',
});

async function removeAll(call: DialectCall) {
  const given = checked(removal, call.body);
  const data = [];
  for (const id of 'emails' in given ? given.emails : given.ids)
    data.push({ object: 'suppression', id, deleted: await unsuppress(call, id) });
  return { data };
}
