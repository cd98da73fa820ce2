/**
 * The first checks of every call to the public API, in this order: the API key (401), free capacity (429; more of it where
 * the endpoint asks for that), the organization's request limits (429), the scopes of the key (403). An authenticated call
 * counts whatever its result; a call that is refused with 429 counts in no window.
 */

import type { IncomingMessage } from 'node:http';
import type { Context } from 'koa';
import { type Caller, type Grant, mayDo, requireGrant } from '#accounts/api-keys.ts';
import {
  overLimit,
  type RequestCount,
  type RequestLimits,
  type Taken,
  type Window,
} from '#accounts/limits.ts';
import { clientAddress } from '#platform/base/net/client-address.ts';
import { Refusal } from '#platform/values/refusal.ts';
import type { AuthThrottle } from './auth-throttle.ts';
import { setRateHeaders } from './rate-headers.ts';

export interface AuthorizeParts {
  findCaller(key: string): Promise<Caller | null>;
  /** Counts a request of the organization. */
  take(orgId: string, limits: RequestLimits, count?: RequestCount): Promise<Taken>;
  /** Reverses `take`. */
  uncount(orgId: string, count: RequestCount): Promise<void>;
  authThrottle: AuthThrottle;
}

/** The proof of who calls. Dialects leave theirs in the state (front/dialects/serve-dialects.ts). */
export interface Credential {
  /** Null: it is of no key, or of one that no longer works. */
  find(findCaller: AuthorizeParts['findCaller']): Promise<Caller | null>;
  /** The message for the caller if nobody is found. */
  fault: string;
}

export interface Authorize {
  /** Before the call is counted, `admit` can refuse it (429). */
  enter(context: Context, grant: Grant, admit?: (caller: Caller) => Promise<void>): Promise<Caller>;
  /** Whether the key of a long-running call still has the scope; it can have been revoked. Counts nothing. */
  isStillAllowed(context: Context, grant: Grant): Promise<boolean>;
  /** Counts a call that `enter` has counted as `requests` of the day; refuses it (429) if the day has too few left. */
  countAsMany(context: Context, caller: Caller, requests: number): Promise<void>;
  /** Undoes the count of a call that is then refused with 429. */
  uncount(context: Context): Promise<void>;
  /** A call without an endpoint (404, 405) needs no key, but counts if it has one. */
  countUnrouted(context: Context): Promise<void>;
}

/** A 429 after the call was counted, so that it is uncounted. */
export class UncountedRefusal extends Refusal {}

class DayTooShort extends UncountedRefusal {
  constructor(windows: Window[], requests: number) {
    const day = windows.find(({ name }) => name === 'day')!;
    // The call itself has taken one of them.
    const message = `This batch counts as ${requests} requests, and ${day.remaining + 1} of the day's ${day.limit} are left.`;
    super('RATE_LIMIT_EXCEEDED', message, { retryAfterMs: day.resetMs });
  }
}

/** For each authorized request, the check that is repeated when its body has arrived. */
const stillAllowed = new WeakMap<IncomingMessage, () => Promise<void>>();

/**
 * When the body has arrived, which may take five minutes: the key can have been revoked, and one that has leaked would go on
 * working for as long as its thief keeps calls open.
 */
export async function requireStillAllowed(request: IncomingMessage): Promise<void> {
  await stillAllowed.get(request)?.();
}

/**
 * The pages of an answer that its reader may take hours for, as long as the reader has the right to them. Then the connection is
 * cut, so that the part is not taken for the whole.
 */
export async function* whileAllowed<Page>(
  { res }: Context,
  pages: AsyncIterable<Page>,
  isStillAllowed: () => Promise<boolean>,
): AsyncGenerator<Page> {
  for await (const page of pages) {
    if (!(await isStillAllowed())) return void res.destroy();
    yield page;
  }
}

export function createAuthorize(parts: AuthorizeParts): Authorize {
  return {
    async enter(context, grant, admit) {
      const caller = await authenticate(parts, context, credentialOf(context));
      // A refused send is logged with its sender (front/api/api-app.ts).
      if (grant === 'email:send') context.state.sender = caller;
      await context.state.admitCaller?.(caller.orgId, grant === 'email:send');
      await admit?.(caller);
      await countRequest(parts, context, caller);
      requireGrant(caller, grant);
      stillAllowed.set(context.req, async () => {
        requireGrant(await authenticate(parts, context, credentialOf(context)), grant);
      });
      return caller;
    },
    async isStillAllowed(context, grant) {
      const caller = await credentialOf(context)!.find(parts.findCaller);
      return caller !== null && mayDo(caller, grant);
    },
    async countAsMany(context, { orgId, limits }, requests) {
      if (limits.perDay === null || requests === 1) return;
      const { allowed, windows } = await parts.take(orgId, limits, { second: 0, day: requests - 1 });
      setRateHeaders(context, windows);
      context.state.rateWindows = windows;
      if (!allowed) throw new DayTooShort(windows, requests);
      context.state.requests = requests;
    },
    async uncount({ state: { rateWindows, orgId, requests = 1 } }) {
      if (rateWindows && orgId !== undefined) await parts.uncount(orgId, { second: 1, day: requests });
    },
    async countUnrouted(context) {
      const credential = credentialOf(context);
      if (credential) await countRequest(parts, context, await authenticate(parts, context, credential));
    },
  };
}

function credentialOf({ state, req }: Context): Credential | null {
  return state.credential === undefined ? bearerKey(req.headers.authorization) : state.credential;
}

export function bearerKey(authorization: string | undefined): Credential | null {
  const key = /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
  return key === undefined ? null : apiKey(key);
}

export function apiKey(key: string): Credential {
  return { find: (findCaller) => findCaller(key), fault: wrongKey(key) };
}

async function authenticate(
  parts: AuthorizeParts,
  context: Context,
  credential: Credential | null,
): Promise<Caller> {
  const caller = await credential?.find(parts.findCaller);
  if (caller) return caller;
  throw refuseCredential(parts, context, credential);
}

function refuseCredential(
  { authThrottle }: AuthorizeParts,
  context: Context,
  credential: Credential | null,
): Refusal {
  const { exceeded, window } = authThrottle.fail(clientAddress(context));
  setRateHeaders(context, [window]);
  if (exceeded) {
    const message = 'Too many requests without a valid API key from this address.';
    return new Refusal('RATE_LIMIT_EXCEEDED', message, { retryAfterMs: window.resetMs });
  }
  // RFC 9110 section 15.5.2: a 401 names the scheme to authenticate with.
  context.set('WWW-Authenticate', 'Bearer');
  if (credential) return new Refusal('UNAUTHORIZED', credential.fault);
  const message = 'The header Authorization: Bearer <API key> is missing or malformed.';
  return new Refusal('UNAUTHORIZED', message, { reason: 'API_KEY_MISSING' });
}

/** An application that moves here from another service may still send the key of the service that it comes from. */
function wrongKey(key: string): string {
  return key.startsWith('em_')
    ? 'The API key is not valid, or it has been revoked.'
    : 'The API key is not one of this server: those start with em_.';
}

async function countRequest(
  { take }: AuthorizeParts,
  context: Context,
  { orgId, limits }: Caller,
): Promise<void> {
  if (limits.perSecond === null && limits.perDay === null) return;
  const { allowed, windows } = await take(orgId, limits);
  setRateHeaders(context, windows);
  if (allowed) {
    context.state.rateWindows = windows;
    context.state.orgId = orgId;
    return;
  }
  throw overLimit(windows);
}
