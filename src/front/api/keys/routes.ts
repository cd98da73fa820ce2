/**
 * /api/public/keys: an organization's API keys. A key can create others with any scopes, in its own organization, and
 * can revoke and rotate itself. To a test key there are test keys only. A revoked key can still work for up to a second
 * (platform/base/bounded-cache.ts).
 */
import {
  defaultOverlapMs,
  findManagedKey,
  keyDocument,
  kindOfNewKey,
  makeKey,
  rotateKey,
} from '#accounts/create-key.ts';
import { listKeys, revokeKey } from '#accounts/rows/keys.ts';
import { answer, byId, doneAnswer, readPage, resource } from '#front/api/management.ts';
import { noBody } from '#front/http/body-limits.ts';
import { isoOrNull } from '#platform/base/clock.ts';
import { keySchemas, keysQuery, newKeyRequest, rotateQuery } from './schema.ts';

const keys = resource('Keys', byId('key', findManagedKey), 'key manager');

export const keyEndpoints = [
  keys.collection({
    route: 'GET /keys',
    operationId: 'listKeys',
    summary: 'List keys',
    description: 'The API keys, without the secret keys themselves; to a test key, the test keys.',
    query: keysQuery,
    response: answer('A page of keys.', keySchemas.KeysAnswer),
    async respond({ db, orgId, caller, query }) {
      const { page, next } = await readPage(query, (rows) => listKeys(db, orgId, rows, caller.isTest));
      return { keys: page.map(keyDocument), next };
    },
  }),
  keys.collection({
    route: 'POST /keys',
    operationId: 'createKey',
    summary: 'Create a key',
    description:
      'Creates an API key of your organization. The key is shown only in this response. A test key creates test keys only.',
    body: newKeyRequest,
    response: answer('The key.', keySchemas.NewKeyAnswer),
    errors: { VALIDATION_ERROR: true },
    respond: async ({ db, orgId, caller, body, now }) =>
      makeKey(db, { orgId, ...body, test: kindOfNewKey(caller.isTest, body.test) }, now),
  }),
  keys.item({
    route: 'DELETE /keys/{id}',
    body: noBody,
    operationId: 'revokeKey',
    summary: 'Revoke a key',
    description:
      'Ends a key; it stops working everywhere within a second. A key that was revoked before stays revoked.',
    response: doneAnswer('The key is revoked.'),
    async respond({ db, found, now }) {
      await revokeKey(db, found.id, now);
      return {};
    },
  }),
  keys.item({
    route: 'POST /keys/{id}/rotate',
    body: noBody,
    operationId: 'rotateKey',
    summary: 'Rotate a key',
    description:
      'Replaces a key with a new one that has the same label, scopes and options. The old key works for another 24 hours, or ' +
      'ends at once with `now=true`.',
    query: rotateQuery,
    response: answer('The new key.', keySchemas.RotatedKeyAnswer),
    errors: {
      BAD_REQUEST: 'The id in the path is not a UUID, or the key was revoked or replaced before.',
    },
    async respond({ db, found, query, now }) {
      const made = await rotateKey(db, found, now, query.now ? 0 : defaultOverlapMs);
      return { ...made, oldKeyUntil: isoOrNull(made.oldKeyUntil) };
    },
  }),
];
