/**
 * Parts of a page that update themselves (assets/live.js). The browser sends the version that it shows; if that is current,
 * the answer is empty, so nothing moves on the page and no screen reader announces a change.
 */
import { createHash } from 'node:crypto';
import { fragment, type PageView, type PageVisit, sendBody } from './page.ts';

/** The version of a part's data. It changes each minute, because the page shows relative times. */
export function versionOf(data: unknown, now: number): string {
  const what = JSON.stringify([data, Math.floor(now / 60_000)]);
  return createHash('sha256').update(what).digest('base64url').slice(0, 22);
}

/** The part, or 204 if the browser already shows this version. */
export function unlessCurrent({ query, context }: PageVisit, version: string, view: string, data: object) {
  if (query.get('seen') !== version) return fragment(view, data) satisfies PageView;
  context.status = 204;
  return sendBody('', 'text/html; charset=utf-8');
}
