/**
 * Where a browser goes after signing in. The path comes from the address bar, so anybody can write it: it is judged as a
 * browser will read it, after `..` and `\` are resolved, and is never another site's.
 */
export function pathWithin(to: string | null): string {
  const origin = 'http://here.invalid';
  if (!to?.startsWith('/') || !URL.canParse(to, origin)) return '/dashboard';
  const url = new URL(to, origin);
  const isWithin = url.pathname === '/dashboard' || url.pathname.startsWith('/dashboard/');
  return url.origin === origin && isWithin ? url.pathname + url.search : '/dashboard';
}

/** Of a whole URL; null if it is none. */
export function pathOf(url: string): string | null {
  return URL.canParse(url) ? new URL(url).pathname + new URL(url).search : null;
}
