/**
 * /api/public/keys: an organization's API keys. A key may make others with any scopes, and they are of its own organization;
 * it may revoke and rotate itself. What is revoked may be in use for a second yet (base/lookup-cache.ts).
 */
import type { Context } from 'koa';
import { makeKey, rotateKey } from '../../accounts/create-key.ts';
import { iso, isoOrNull } from '../../base/clock.ts';
import { findKey, type KeyRecord, listKeys, revokeKey } from '../../db/accounts/keys.ts';
import { Refusal } from '../../mail/refusal.ts';
import {
  type AddManagementRoutes,
  idIn,
  type Management,
  management,
  readJson,
  requireFound,
} from '../management.ts';
import { readQuery } from '../query.ts';
import { type KeyOut, keysQuery, newKeyRequest } from './schema.ts';

export const addKeyRoutes: AddManagementRoutes = (router, inBounds, parts) => {
  router.get(
    '/keys',
    inBounds,
    management(parts, (context, orgId) => list(context, orgId, parts)),
  );
  router.post(
    '/keys',
    inBounds,
    management(parts, (context, orgId) => add(context, orgId, parts)),
  );
  router.delete(
    '/keys/:id',
    inBounds,
    management(parts, (context, orgId) => revoke(context, orgId, parts)),
  );
  router.post(
    '/keys/:id/rotate',
    inBounds,
    management(parts, (context, orgId) => rotate(context, orgId, parts)),
  );
};

async function list(context: Context, orgId: string, { db }: Management): Promise<object> {
  const { after, limit } = readQuery(context, keysQuery);
  const keys = await listKeys(db, orgId, { after, limit: limit + 1 });
  const page = keys.slice(0, limit);
  return { keys: page.map(present), next: keys.length > limit ? page.at(-1)!.id : null };
}

async function add(context: Context, orgId: string, { db, clock }: Management): Promise<object> {
  const { label, scopes } = await readJson(context, newKeyRequest);
  const made = await makeKey(db, { orgId, label, scopes }, clock.now());
  return { ...made, label };
}

async function keyIn(context: Context, orgId: string, { db }: Management): Promise<KeyRecord> {
  return requireFound(await findKey(db, idIn(context), orgId), 'key');
}

/** One that was revoked before stays so. */
async function revoke(context: Context, orgId: string, parts: Management): Promise<object> {
  const { id } = await keyIn(context, orgId, parts);
  await revokeKey(parts.db, id, parts.clock.now());
  return {};
}

async function rotate(context: Context, orgId: string, parts: Management): Promise<object> {
  const key = await keyIn(context, orgId, parts);
  const made = await rotateKey(parts.db, key, parts.clock.now());
  if (!made) throw new Refusal('BAD_REQUEST', 'The key was revoked already; make a new one.');
  return { ...made, label: key.label };
}

function present({ id, label, hint, scopes, ...times }: KeyRecord): KeyOut {
  return {
    ...{ id, label, hint, scopes, createdAt: iso(times.createdAt) },
    ...{ revokedAt: isoOrNull(times.revokedAt), endsAt: isoOrNull(times.endsAt) },
  };
}
