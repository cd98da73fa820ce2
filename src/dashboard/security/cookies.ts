/**
 * The dashboard's cookies: HttpOnly, SameSite=Lax and, if the base URL is https, Secure with the `__Host-` prefix, so that no
 * other host of the domain can set them.
 */
import type { Context } from 'koa';

export interface Cookies {
  get(context: Context, name: CookieName): string | null;
  /** Null deletes the cookie. Without `maxAgeMs` it lasts until the browser is closed. */
  set(context: Context, name: CookieName, value: string | null, maxAgeMs?: number): void;
}

type CookieName = 'session' | 'visitor' | 'browser' | 'flash' | 'theme';

export function createCookies(isHttps: boolean): Cookies {
  const prefix = isHttps ? '__Host-postern-' : 'postern-';
  return {
    get(context, name) {
      const wanted = `${prefix}${name}=`;
      const pairs = context
        .get('cookie')
        .split(';')
        .map((pair) => pair.trim());
      return pairs.find((pair) => pair.startsWith(wanted))?.slice(wanted.length) ?? null;
    },
    set(context, name, value, maxAgeMs) {
      const age = value === null ? 0 : maxAgeMs && Math.floor(maxAgeMs / 1000);
      const parts = [
        `${prefix}${name}=${value ?? ''}`,
        'Path=/',
        'HttpOnly',
        'SameSite=Lax',
        isHttps && 'Secure',
        age !== undefined && `Max-Age=${age}`,
      ];
      context.append('Set-Cookie', parts.filter(Boolean).join('; '));
    },
  };
}
