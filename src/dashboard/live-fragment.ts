/**
 * Parts of a page that bring themselves up to date (assets/live.js). The browser says what it has seen last; where that
 * is still so, nothing is sent, nothing moves on the page, and no screen reader speaks up.
 */
import { createHash } from 'node:crypto';
import { type PageView, part, sendBody, type Visit } from './page.ts';

/** Of what a part shows. Times in words go by the minute. */
export function versionOf(data: unknown, now: number): string {
  const what = JSON.stringify([data, Math.floor(now / 60_000)]);
  return createHash('sha256').update(what).digest('base64url').slice(0, 22);
}

/** The part, or 204 where the browser has it as it is. */
export function unlessSeen({ query, context }: Visit, seen: string, view: string, data: object) {
  if (query.get('seen') !== seen) return part(view, data) satisfies PageView;
  context.status = 204;
  return sendBody('', 'text/html; charset=utf-8');
}
