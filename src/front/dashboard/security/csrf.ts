/**
 * Three defences against forms on other sites: the browser does not send the session cookie with them (SameSite), it sends
 * their origin (Sec-Fetch-Site, Origin), and they lack the token of our forms, which is made for one session.
 */
import type { Context } from 'koa';
import { PageError, staleForm } from '#front/dashboard/page-error.ts';
import type { Signer } from './signer.ts';

export interface Csrf {
  tokenFor(visitor: string): string;
  /** Throws if another site made the request. Called before the body is read. */
  checkOrigin(context: Context): void;
  /** Throws if the token is missing or belongs to another session. */
  checkToken(context: Context, form: URLSearchParams, visitor: string): void;
}

const tokenField = '_csrf';
const tokenHeader = 'x-csrf-token';

export function createCsrf(signer: Signer, baseUrl: () => string): Csrf {
  return {
    tokenFor: (visitor) => signer.sign(`csrf ${visitor}`),
    checkOrigin(context) {
      const site = context.get('sec-fetch-site');
      if (site !== '' && site !== 'same-origin' && site !== 'none') throw foreign();
      const origin = context.get('origin');
      if (origin !== '' && !isOurs(origin, context.get('host'), baseUrl())) throw foreign();
    },
    checkToken(context, form, visitor) {
      const token = form.get(tokenField) ?? context.get(tokenHeader);
      if (!signer.isSigned(`csrf ${visitor}`, token)) throw staleForm();
    },
  };
}

/** Our base URL, or the host that this browser used, for example through a tunnel. */
function isOurs(origin: string, host: string, baseUrl: string): boolean {
  if (!URL.canParse(origin)) return false;
  const sender = new URL(origin);
  return sender.origin === new URL(baseUrl).origin || sender.host === host;
}

function foreign(): PageError {
  return new PageError(403, 'Not allowed', 'Another site made this request. Nothing was changed.');
}
