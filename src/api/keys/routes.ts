/**
 * /api/public/keys: an organization's API keys. A key can create others with any scopes, in its own organization, and
 * can revoke and rotate itself. A revoked key can still work for up to a second (base/lookup-cache.ts).
 */
import type { Context } from 'koa';
import { makeKey, rotateKey } from '../../accounts/create-key.ts';
import { iso, isoOrNull } from '../../base/clock.ts';
import { findKey, type KeyRecord, listKeys, revokeKey } from '../../db/accounts/keys.ts';
import { Refusal } from '../../mail/refusal.ts';
import { invalidLimit, jsonResponse } from '../endpoint.ts';
import {
  doneContent,
  exampleId,
  exampleTime,
  idIn,
  idInPath,
  invalidBody,
  invalidId,
  invalidMember,
  jsonBody,
  type Management,
  managementEndpoints,
  notFound,
  readJson,
  requireFound,
} from '../management.ts';
import { readQuery } from '../query.ts';
import { type KeyOut, keySchemas, keysQuery, newKeyRequest } from './schema.ts';

const label = 'shop';
const scopes = ['email:send', 'domain_scope:example.com'];
const createdKey = {
  success: true,
  id: exampleId,
  key: 'em_5Zq0mD2nYw9cVb7LkT1xRj4sGh8uPa3e',
  label,
  scopes,
};
const listedKey = {
  id: exampleId,
  label,
  hint: 'em_5Zq0mD',
  scopes,
  createdAt: exampleTime,
  revokedAt: null,
  endsAt: null,
};

export const keyEndpoints = managementEndpoints('Keys', [
  {
    route: 'GET /keys',
    operationId: 'listKeys',
    summary: 'List keys',
    description: 'The API keys, without the secret keys themselves.',
    query: keysQuery,
    response: jsonResponse('A page of keys.', keySchemas.KeysAnswer, 'One key', {
      success: true,
      keys: [listedKey],
      next: exampleId,
    }),
    errors: { VALIDATION_ERROR: invalidLimit(1000) },
    respond: list,
  },
  {
    route: 'POST /keys',
    operationId: 'createKey',
    summary: 'Create a key',
    description: 'Creates an API key of your organization. The key is shown only in this response.',
    body: jsonBody(newKeyRequest, 'For a shop that sends from one domain', { label, scopes }),
    response: jsonResponse('The key.', keySchemas.NewKeyAnswer, 'Created', createdKey),
    errors: { VALIDATION_ERROR: invalidMember('label', 'string', 'undefined'), BAD_REQUEST: invalidBody },
    respond: create,
  },
  {
    route: 'DELETE /keys/{id}',
    operationId: 'revokeKey',
    summary: 'Revoke a key',
    description:
      'Ends a key; it stops working everywhere within a second. A key that was revoked before stays revoked.',
    parameters: [idInPath],
    response: { description: 'The key is revoked.', content: doneContent },
    errors: { BAD_REQUEST: invalidId, NOT_FOUND: notFound('key') },
    respond: revoke,
  },
  {
    route: 'POST /keys/{id}/rotate',
    operationId: 'rotateKey',
    summary: 'Rotate a key',
    description: 'Replaces a key with a new one that has the same label and scopes; the old key ends.',
    parameters: [idInPath],
    response: jsonResponse('The new key.', keySchemas.NewKeyAnswer, 'Replaced', createdKey),
    errors: {
      BAD_REQUEST: {
        ...invalidId,
        when: 'The id in the path is not a UUID, or the key was revoked or replaced before.',
      },
      NOT_FOUND: notFound('key'),
    },
    respond: rotate,
  },
]);

async function list(context: Context, orgId: string, { db }: Management): Promise<object> {
  const { after, limit } = readQuery(context, keysQuery);
  const keys = await listKeys(db, orgId, { after, limit: limit + 1 });
  const page = keys.slice(0, limit);
  return { keys: page.map(present), next: keys.length > limit ? page.at(-1)!.id : null };
}

async function create(context: Context, orgId: string, { db, clock }: Management): Promise<object> {
  const request = await readJson(context, newKeyRequest);
  const created = await makeKey(db, { orgId, label: request.label, scopes: request.scopes }, clock.now());
  return { ...created, label: request.label };
}

async function requireKey(context: Context, orgId: string, { db }: Management): Promise<KeyRecord> {
  return requireFound(await findKey(db, idIn(context), orgId), 'key');
}

async function revoke(context: Context, orgId: string, parts: Management): Promise<object> {
  const { id } = await requireKey(context, orgId, parts);
  await revokeKey(parts.db, id, parts.clock.now());
  return {};
}

async function rotate(context: Context, orgId: string, parts: Management): Promise<object> {
  const key = await requireKey(context, orgId, parts);
  const now = parts.clock.now();
  const created = await rotateKey(parts.db, key, now);
  if (!created) throw new Refusal('BAD_REQUEST', whyNotRotated(key, now));
  return { ...created, label: key.label };
}

/** A key that was replaced with a grace period is not revoked: it works until that period ends. */
function whyNotRotated({ endsAt }: KeyRecord, now: number): string {
  if (endsAt === null) return 'The key has been revoked. Create a new key.';
  const verb = endsAt > now ? 'works until' : 'ended at';
  return `The key has been replaced and ${verb} ${iso(endsAt)}. Use the key that replaced it, or create a new key.`;
}

function present({ id, label, hint, scopes, createdAt, revokedAt, endsAt }: KeyRecord): KeyOut {
  return {
    id,
    label,
    hint,
    scopes,
    createdAt: iso(createdAt),
    revokedAt: isoOrNull(revokedAt),
    endsAt: isoOrNull(endsAt),
  };
}
