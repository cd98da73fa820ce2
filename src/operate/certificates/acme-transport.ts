/**
 * The HTTP requests of acme-client. Its own transport repeats requests by itself, reads answers of any size and hides what a
 * failure was. This one sends each request once, bounds the answer in time and size, and makes an AcmeFailure of every failure.
 */
import '#platform/base/net/next-address.ts';
import { AsyncLocalStorage } from 'node:async_hooks';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { readBounded } from '#platform/base/net/read-bounded.ts';
import { sanitize } from '#platform/base/sanitize.ts';
import { maxRetryAfterMs } from './renewal-schedule.ts';

/** The cause: the host, the authority, or our own too frequent requests. */
export type FailureKind = 'host' | 'authority' | 'limited';

export class AcmeFailure extends Error {
  readonly kind: FailureKind;
  /** The last part of the problem's type (RFC 8555 section 6.7), or `authority`. */
  readonly type: string;
  readonly retryAfterMs: number | null;

  constructor(
    text: string,
    { kind, type, retryAfterMs = null }: { kind: FailureKind; type: string; retryAfterMs?: number | null },
  ) {
    super(sanitize(text.slice(0, maxTextLength)));
    this.kind = kind;
    this.type = type;
    this.retryAfterMs = retryAfterMs;
  }
}

export interface Transport {
  /** PEM; null: Node's authorities. */
  ca: string | null;
  /** Ends the request under way. */
  signal: AbortSignal;
  /** The last answer's Retry-After; null: it had none. */
  retryAfterMs: number | null;
}

/** acme-client has one adapter for all its clients, so that it finds the client's transport in the context of the call. */
export const transports = new AsyncLocalStorage<Transport>();

const maxTextLength = 300;
const maxBytes = 256 * 1024;
const timeoutMs = 20_000;

/** The members of an axios request that acme-client sets. */
interface AcmeRequest {
  url: string;
  method: string;
  data?: string;
  headers: { toJSON(): Record<string, string> };
}

export const acmeAdapter = async (config: AcmeRequest) => {
  const transport = transports.getStore()!;
  const { status, headers, text } = await exchange(config.url, transport, {
    method: config.method.toUpperCase(),
    headers: { ...config.headers.toJSON(), 'user-agent': 'postern' },
    body: config.data,
  });
  transport.retryAfterMs = readRetryAfter(headers['retry-after']);
  const failure = failureOf(status, text, transport.retryAfterMs);
  if (failure) throw failure;
  return { status, statusText: '', headers, data: text, config, request: null };
};

/** Outside of acme-client, for resources that need no signature. */
export async function getJson(
  url: string,
  transport: Transport,
): Promise<{ body: unknown; retryAfterMs: number | null }> {
  const { status, headers, text } = await exchange(url, transport, {
    method: 'GET',
    headers: {},
    body: undefined,
  });
  const retryAfterMs = readRetryAfter(headers['retry-after']);
  const failure = failureOf(status, text, retryAfterMs);
  if (failure) throw failure;
  return { body: JSON.parse(text), retryAfterMs };
}

interface Ask {
  method: string;
  headers: Record<string, string>;
  body: string | undefined;
}

async function exchange(url: string, { ca, signal }: Transport, { method, headers, body }: Ask) {
  const { hostname } = new URL(url);
  const late = AbortSignal.timeout(timeoutMs);
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const options = {
        method,
        headers: { ...headers, ...(body !== undefined && { 'content-length': Buffer.byteLength(body) }) },
        signal: AbortSignal.any([signal, late]),
        agent: false as const,
        ...(ca !== null && { ca }),
      };
      // Node would wait for a final response after any number of interim ones, within the time.
      request(url, options).on('response', resolve).on('error', reject).end(body);
    });
    const bytes = await readBounded(response, maxBytes, `an answer is larger than ${maxBytes / 1024} KB`);
    return { status: response.statusCode!, headers: response.headers, text: bytes.toString() };
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException;
    const reason = late.aborted
      ? `no answer within ${timeoutMs / 1000} s`
      : message || `no connection (${code})`;
    throw new AcmeFailure(`${hostname}: ${reason}`, { kind: 'authority', type: 'authority' });
  }
}

/** RFC 9110 section 10.2.3: seconds or a date. */
function readRetryAfter(text: string | undefined): number | null {
  if (text === undefined) return null;
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return ms > 0 ? Math.min(ms, maxRetryAfterMs) : null;
}

/** Types that are about our account or the order of our requests, not about a host. */
const ofAuthority = [
  'accountDoesNotExist',
  'serverInternal',
  'badNonce',
  'externalAccountRequired',
  'userActionRequired',
];

function failureOf(status: number, text: string, retryAfterMs: number | null): AcmeFailure | null {
  if (status < 400) return null;
  const { type, detail } = problemOf(text);
  // acme-client repeats the request with the nonce of this answer (RFC 8555 section 6.5).
  if (type === 'badNonce' && status === 400) return null;
  const words = detail || `the authority answers HTTP ${status}`;
  if (status === 429 || type === 'rateLimited')
    return new AcmeFailure(words, { kind: 'limited', type: 'rateLimited', retryAfterMs });
  const isAuthority = status >= 500 || type === '' || ofAuthority.includes(type);
  const kind = isAuthority ? 'authority' : 'host';
  return new AcmeFailure(words, { kind, type: type || 'authority', retryAfterMs });
}

/** RFC 7807; also the `error` of a challenge. */
export function readProblem(value: unknown): { type: string; detail: string } {
  const { type, detail } = (value ?? {}) as { type?: unknown; detail?: unknown };
  const [, name = ''] = /^urn:ietf:params:acme:error:(\w{1,40})$/.exec(String(type ?? '')) ?? [];
  return { type: name, detail: typeof detail === 'string' ? detail : '' };
}

function problemOf(text: string): { type: string; detail: string } {
  try {
    return readProblem(JSON.parse(text));
  } catch {
    return readProblem(null);
  }
}
