/**
 * One POST to an endpoint that we do not trust. Its name is resolved by our resolver, and each new connection goes to exactly the
 * addresses that were checked: there is no second lookup that a name server could answer differently. Redirects are not followed,
 * certificates are verified, time and memory are bounded.
 *
 * Only the status matters. The body is read for a moment and its beginning kept, to show it. Connections are kept for the next
 * event and stay with the checked address. Rejects with an Error whose message is one sentence, or with the signal's reason.
 */
import '#platform/base/net/next-address.ts';
import {
  type ClientRequest,
  Agent as HttpAgent,
  type IncomingMessage,
  request as requestHttp,
} from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { limitInterimResponses } from '#mail/deliver/route/interim-responses.ts';
import { type AddressOptions, addressesOf } from '#mail/deliver/route/web-host-addresses.ts';
import { isForbidden } from '#platform/vendor/mx-connect.ts';
import type { WebhookResponse } from './classify-response.ts';
import { hostOf, isLocalhost } from './endpoint-url.ts';

interface Request {
  url: string;
  headers: Record<string, string>;
  body: string | Buffer;
}

export type Post = (request: Request, stopped: AbortSignal) => Promise<WebhookResponse>;

export interface Poster {
  post: Post;
  /** Closes idle connections. */
  close(): void;
}

export interface PosterOptions extends AddressOptions {
  timeoutMs: number;
}

/** An endpoint must answer within this time, and a second more for each MiB of the body. */
export const timeoutMs = 15_000;
const bytesPerSecond = 1024 * 1024;
const bodyTimeoutMs = 2_000;
/** Bytes of a body that are kept, and that are read at most so that the connection can be reused. */
const maxKeptBytes = 1024;
const maxReadBytes = 64 * 1024;
/** Many servers close idle connections after five seconds. */
const idleMs = 4_000;

export function createPoster(options: PosterOptions): Poster {
  const { allowPrivate, timeoutMs } = options;
  const lookup = createLookup(options);
  const agentOptions = {
    keepAlive: true,
    timeout: idleMs,
    maxFreeSockets: 4,
  };
  const agents = { http: new HttpAgent(agentOptions), https: new HttpsAgent(agentOptions) };

  function open(url: URL, request: Request, signal: AbortSignal, isFresh: boolean): Promise<IncomingMessage> {
    const isPlain = url.protocol === 'http:';
    return new Promise((resolve, reject) => {
      const outgoing: ClientRequest = (isPlain ? requestHttp : requestHttps)(url, {
        method: 'POST',
        headers: { ...request.headers, 'content-length': Buffer.byteLength(request.body) },
        agent: isFresh ? false : agents[isPlain ? 'http' : 'https'],
        lookup,
        signal,
      });
      limitInterimResponses(outgoing);
      outgoing.on('response', resolve);
      outgoing.on('error', (error: NodeJS.ErrnoException) => {
        // The server closed the kept connection while we wrote. Sending again is safe: a receiver must expect duplicates.
        const isStale = outgoing.reusedSocket && ['ECONNRESET', 'EPIPE'].includes(error.code!);
        if (isStale && !signal.aborted) resolve(open(url, request, signal, true));
        else reject(error);
      });
      // Node reports no error if the server switches protocols (101).
      outgoing.on('close', () => reject(new Error(`${hostOf(url)} ended the connection without an answer`)));
      outgoing.end(request.body);
    });
  }

  return {
    async post(request, stopped) {
      const url = new URL(request.url);
      const host = hostOf(url);
      // A literal address is not looked up, so `lookup` cannot check it.
      if (isIP(host) && isForbidden(host, allowPrivate)) throw new Error(`${host} is a private address`);
      const allowedMs = timeoutMs + 1000 * Math.floor(Buffer.byteLength(request.body) / bytesPerSecond);
      const timedOut = AbortSignal.timeout(allowedMs);
      try {
        const response = await open(url, request, AbortSignal.any([stopped, timedOut]), false);
        const text = await readBeginning(response);
        return { status: response.statusCode!, retryAfter: response.headers['retry-after'] ?? null, text };
      } catch (error) {
        if (stopped.aborted) throw stopped.reason;
        if (timedOut.aborted) throw new Error(`${host} did not answer within ${allowedMs / 1000} s`);
        throw new Error(sentenceOf(host, error as NodeJS.ErrnoException));
      }
    },
    close() {
      agents.http.destroy();
      agents.https.destroy();
    },
  };
}

export function createLookup(options: AddressOptions): LookupFunction {
  const resolve: AddressOptions['resolve'] = (name, type) =>
    isLocalhost(name) ? Promise.resolve([type === 'A' ? '127.0.0.1' : '::1']) : options.resolve(name, type);
  return (host, { all }, callback) => {
    addressesOf(host, { ...options, resolve }).then(
      (addresses) =>
        all ? callback(null, addresses) : callback(null, addresses[0]!.address, addresses[0]!.family),
      (error) => callback(error, []),
    );
  };
}

async function readBeginning(response: IncomingMessage): Promise<string> {
  const timedOut = setTimeout(() => response.destroy(), bodyTimeoutMs);
  const beginning: Buffer[] = [];
  let read = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      if (read < maxKeptBytes) beginning.push(chunk.subarray(0, maxKeptBytes - read));
      read += chunk.length;
      if (read > maxReadBytes) break;
    }
  } catch {
    // The body ended early or took too long: its beginning is enough.
  } finally {
    clearTimeout(timedOut);
    response.destroy();
  }
  // Streaming mode drops an incomplete character at the end. PostgreSQL does not accept NUL in text.
  return new TextDecoder().decode(Buffer.concat(beginning), { stream: true }).replaceAll('\0', '\uFFFD');
}

const reasons: Record<string, string> = {
  ECONNREFUSED: 'refuses the connection',
  ECONNRESET: 'closed the connection without an answer',
  EPIPE: 'closed the connection without an answer',
  EHOSTUNREACH: 'cannot be reached (no route to the host)',
  ENETUNREACH: 'cannot be reached (no route to its network)',
  ETIMEDOUT: 'does not take the connection',
};

/** If all of several addresses fail, Node gives only a code; after a semicolon it adds advice, which is cut off. */
export function sentenceOf(host: string, { code = '', message }: NodeJS.ErrnoException): string {
  if (code in reasons) return `${host} ${reasons[code]}`;
  const reason = message.split(';', 1)[0] || `no connection (${code})`;
  return reason.startsWith(host) ? reason : `${host}: ${reason}`;
}
