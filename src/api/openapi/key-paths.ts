/** /api/public/keys in the document. */

import {
  badId,
  badLimit,
  badMember,
  badType,
  doneAnswer,
  exampleId,
  idInPath,
  managing,
  missing,
  one,
  paging,
} from './management-parts.ts';
import type { Document } from './openapi-document.ts';

const tag = 'Keys';
const allow = 'HEAD, GET, POST';
const label = 'shop';
const scopes = ['email:send', 'domain_scope:example.com'];
const made = { success: true, id: exampleId, key: 'em_5Zq0mD2nYw9cVb7LkT1xRj4sGh8uPa3e', label, scopes };
const kept = { id: exampleId, label, hint: 'em_5Zq0mD', scopes, createdAt: '2026-03-02T08:15:30.120Z' };

export const keyPaths: Document['paths'] = {
  '/api/public/keys': {
    get: managing({
      ...{ operationId: 'listKeys', tag, summary: 'List keys', parameters: paging(100, 1000), allow },
      description: 'The API keys, without the keys themselves.',
      answerIs: 'A page of keys.',
      answer: one('KeysAnswer', 'One key', {
        ...{ success: true, keys: [{ ...kept, revokedAt: null, endsAt: null }], next: exampleId },
      }),
      errors: { VALIDATION_ERROR: badLimit(1000) },
    }),
    post: managing({
      ...{ operationId: 'createKey', tag, summary: 'Make a key', allow },
      description: 'Makes an API key of your organization. The key is shown in this answer and never again.',
      body: one('NewKey', 'For a shop that sends from one domain', { label, scopes }),
      answerIs: 'The key.',
      answer: one('NewKeyAnswer', 'Made', made),
      errors: { VALIDATION_ERROR: badMember('label', 'string', 'undefined'), BAD_REQUEST: badType },
    }),
  },
  '/api/public/keys/{id}': {
    delete: managing({
      ...{ operationId: 'revokeKey', tag, summary: 'Revoke a key', parameters: [idInPath] },
      description: 'Ends a key, within a second everywhere. One that was revoked before stays so.',
      ...{ answerIs: 'It is revoked.', answer: doneAnswer, allow: 'DELETE' },
      errors: { BAD_REQUEST: badId, NOT_FOUND: missing('key') },
    }),
  },
  '/api/public/keys/{id}/rotate': {
    post: managing({
      ...{ operationId: 'rotateKey', tag, summary: 'Rotate a key', parameters: [idInPath] },
      description: 'Replaces a key by a new one with the same label and scopes; the old one ends.',
      ...{ answerIs: 'The new key.', allow: 'POST', answer: one('NewKeyAnswer', 'Made anew', made) },
      errors: {
        BAD_REQUEST: { ...badId, when: 'The id in the path is not a UUID, or the key was revoked already.' },
        NOT_FOUND: missing('key'),
      },
    }),
  },
};
