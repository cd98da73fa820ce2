/**
 * /api/public/keys: an organization's API keys. A key can create others with any scopes, in its own organization, and
 * can revoke and rotate itself. A revoked key can still work for up to a second (base/lookup-cache.ts).
 */
import { keyDocument, makeKey, rotateKey } from '../../accounts/create-key.ts';
import { findKey, listKeys, revokeKey } from '../../db/accounts/keys.ts';
import {
  answer,
  byId,
  doneAnswer,
  exampleId,
  exampleTime,
  invalidMember,
  readPage,
  resource,
} from '../management.ts';
import { keySchemas, keysQuery, newKeyRequest } from './schema.ts';

const label = 'shop';
const scopes = ['email:send', 'domain_scope:example.com'];
const createdKey = { id: exampleId, key: 'em_5Zq0mD2nYw9cVb7LkT1xRj4sGh8uPa3e', label, scopes };
const listedKey = {
  id: exampleId,
  label,
  hint: 'em_5Zq0mD',
  scopes,
  createdAt: exampleTime,
  revokedAt: null,
  endsAt: null,
};

const keys = resource('Keys', byId('key', findKey));

export const keyEndpoints = [
  keys.collection({
    route: 'GET /keys',
    operationId: 'listKeys',
    summary: 'List keys',
    description: 'The API keys, without the secret keys themselves.',
    query: keysQuery,
    response: answer('A page of keys.', keySchemas.KeysAnswer, 'One key', {
      keys: [listedKey],
      next: exampleId,
    }),
    async respond({ db, orgId, query }) {
      const { page, next } = await readPage(query, (rows) => listKeys(db, orgId, rows));
      return { keys: page.map(keyDocument), next };
    },
  }),
  keys.collection({
    route: 'POST /keys',
    operationId: 'createKey',
    summary: 'Create a key',
    description: 'Creates an API key of your organization. The key is shown only in this response.',
    body: {
      schema: newKeyRequest,
      summary: 'For a shop that sends from one domain',
      example: { label, scopes },
    },
    response: answer('The key.', keySchemas.NewKeyAnswer, 'Created', createdKey),
    errors: { VALIDATION_ERROR: invalidMember('label', 'string', 'undefined') },
    respond: ({ db, orgId, body, now }) => makeKey(db, { orgId, ...body }, now),
  }),
  keys.item({
    route: 'DELETE /keys/{id}',
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
    operationId: 'rotateKey',
    summary: 'Rotate a key',
    description: 'Replaces a key with a new one that has the same label and scopes; the old key ends.',
    response: answer('The new key.', keySchemas.NewKeyAnswer, 'Replaced', createdKey),
    errors: {
      BAD_REQUEST: {
        when: 'The id in the path is not a UUID, or the key was revoked or replaced before.',
        message: 'The id in the path is not a UUID.',
      },
    },
    respond: ({ db, found, now }) => rotateKey(db, found, now),
  }),
];
