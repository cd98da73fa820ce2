/** GET /api/public/openapi.json: the document. Takes no key, counts in no limit. */
import type { Middleware } from 'koa';
import type { Document } from './openapi-document.ts';

export function getDocument(document: () => Document): Middleware {
  return (context) => {
    context.body = document();
  };
}
