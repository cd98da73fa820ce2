/**
 * GET /docs: the reference page, generated once. Its content security policy allows only its own style, by hash.
 */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Middleware } from 'koa';
import type { Document } from '../openapi/openapi-types.ts';
import { referencePage } from './reference-page.ts';

interface Page {
  text: string;
  policy: string;
}

export function getDocs(document: () => Document): Middleware {
  let made: Promise<Page> | undefined;
  return async (context) => {
    made ??= makePage(document());
    const { text, policy } = await made;
    context.set('Content-Security-Policy', policy);
    context.set('X-Content-Type-Options', 'nosniff');
    context.set('Referrer-Policy', 'no-referrer');
    context.type = 'html';
    context.body = text;
  };
}

async function makePage(document: Document): Promise<Page> {
  const style = await readFile(join(import.meta.dirname, 'style.css'), 'utf8');
  const hash = createHash('sha256').update(style).digest('base64');
  const policy = [
    "default-src 'none'",
    `style-src 'sha256-${hash}'`,
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  return { text: referencePage(document, style), policy: policy.join('; ') };
}
