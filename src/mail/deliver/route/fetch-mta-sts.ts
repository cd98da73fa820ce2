/**
 * Fetches the text of a domain's MTA-STS policy from https://mta-sts.DOMAIN/.well-known/mta-sts.txt (RFC 8461 section 3.3).
 *
 * Anyone can name any host in DNS, so our resolver looks it up, private and special addresses are refused unless allowed,
 * redirects are not followed, and size and time are limited. The certificate must be from a known authority for exactly
 * that name. Rejects with an Error whose message fits after "its MTA-STS policy could not be fetched: ".
 */
import '#platform/base/net/next-address.ts';
import { X509Certificate } from 'node:crypto';
import type { LookupAddress } from 'node:dns';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import type { LookupFunction } from 'node:net';
import type { PeerCertificate } from 'node:tls';
import { readBounded } from '#platform/base/net/read-bounded.ts';
import { limitInterimResponses } from './interim-responses.ts';
import { type AddressOptions, addressesOf } from './web-host-addresses.ts';

export type FetchPolicy = (domain: string) => Promise<string>;

export interface PolicyHostOptions extends AddressOptions {
  port?: number;
  timeoutMs?: number;
}

/** The size that RFC 8461 section 3.3 suggests. It suggests a minute for the time, but a mail should not wait that long. */
const maxBytes = 64 * 1024;
const defaultTimeoutMs = 10_000;

export function createFetchPolicy(options: PolicyHostOptions): FetchPolicy {
  const { timeoutMs = defaultTimeoutMs } = options;
  return async (domain) => {
    const host = `mta-sts.${domain}`;
    const signal = AbortSignal.timeout(timeoutMs);
    try {
      const addresses = await addressesOf(host, options);
      return await textOf(await get(host, addresses, signal, options));
    } catch (error) {
      if (signal.aborted) throw new Error(`${host} took longer than ${timeoutMs / 1000} s`);
      throw error;
    }
  };
}

function get(
  host: string,
  addresses: LookupAddress[],
  signal: AbortSignal,
  { port = 443 }: PolicyHostOptions,
): Promise<IncomingMessage> {
  const lookup: LookupFunction = (_host, { all }, callback) =>
    all ? callback(null, addresses) : callback(null, addresses[0]!.address, addresses[0]!.family);
  return new Promise((resolve, reject) => {
    const options = {
      host,
      port,
      path: '/.well-known/mta-sts.txt',
      headers: { host, accept: 'text/plain' },
      servername: host,
      lookup,
      checkServerIdentity,
      signal,
      // The connection is not shared, because its certificate is checked differently from all others.
      agent: false as const,
    };
    let response: IncomingMessage | undefined;
    limitInterimResponses(request(options))
      .on('response', (begun) => {
        response = begun.on('error', () => {});
        resolve(begun);
      })
      .on('error', (error) => {
        const failure = new Error(`${host}: ${reasonOf(error)}`);
        // A policy without a length would end with a connection that is reset, as if it were whole.
        response?.destroy(failure);
        reject(failure);
      })
      .end();
  });
}

/** Node adds advice after a semicolon. If several addresses failed, its error has only a code. */
function reasonOf({ message, code }: NodeJS.ErrnoException): string {
  return message.split(';', 1)[0] || `no connection (${code})`;
}

/** RFC 8461 section 3.3: the name must be a DNS-ID; a wildcard may only be the whole first label. */
function checkServerIdentity(host: string, { raw }: PeerCertificate): Error | undefined {
  const named = new X509Certificate(raw).checkHost(host, {
    subject: 'never',
    partialWildcards: false,
    multiLabelWildcards: false,
  });
  return named === undefined ? new Error('its certificate is for another name') : undefined;
}

async function textOf(response: IncomingMessage): Promise<string> {
  const { statusCode, headers } = response;
  try {
    // "HTTP 3xx redirects MUST NOT be followed"; every status except 200 is a failure.
    if (statusCode !== 200) throw new Error(`the policy host answers HTTP ${statusCode}`);
    const [type = ''] = (headers['content-type'] ?? '').split(';');
    if (type.trim().toLowerCase() !== 'text/plain') throw new Error(`the policy's type is "${type}"`);
    const bytes = await readBounded(response, maxBytes, `the policy is larger than ${maxBytes} bytes`);
    return bytes.toString();
  } finally {
    response.destroy();
  }
}
