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

type CookieName = 'session' | 'visitor' | 'browser' | 'flash' | 'theme' | 'organization';

export function createCookies(isHttps: boolean): Cookies {
  const prefix = isHttps ? '__Host-postern-' : 'postern-';
  return {
    get: ({ cookies }, name) => cookies.get(prefix + name) ?? null,
    set({ cookies }, name, value, maxAge) {
      // The proxy in front of the server ends TLS, so Koa takes the connection for an unencrypted one.
      cookies.secure = isHttps;
      cookies.set(prefix + name, value, { httpOnly: true, sameSite: 'lax', maxAge, overwrite: true });
    },
  };
}
