/** Longer than any address of a page; with more, clients would not take the header of the redirect. */
const maxLength = 2_000;

/**
 * The page to return to after signing in. Anyone can put any path into the URL, so it is checked as a browser will resolve
 * it, with `..` and `\`: it never leads outside the dashboard.
 */
export function pathWithin(to: string | null): string {
  const origin = 'http://here.invalid';
  if (to !== null && to.length > maxLength) return '/dashboard';
  if (!to?.startsWith('/') || !URL.canParse(to, origin)) return '/dashboard';
  const url = new URL(to, origin);
  const isWithin = url.pathname === '/dashboard' || url.pathname.startsWith('/dashboard/');
  return url.origin === origin && isWithin ? url.pathname + url.search : '/dashboard';
}

/** Path and query of an absolute URL; null if it is invalid. */
export function pathOf(url: string): string | null {
  return URL.canParse(url) ? new URL(url).pathname + new URL(url).search : null;
}
