/**
 * Fetches one file from a server that we do not trust, for a caller that we do not trust either. Guarded like a webhook
 * (guarded-post.ts): a connection goes to exactly the addresses that were checked, certificates are verified. Redirects are
 * followed, each checked again. The caller bounds size and time. Rejects with an Error whose message is one sentence.
 */
import { type IncomingHttpHeaders, type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP } from 'node:net';
import { limitInterimResponses } from '#mail/deliver/route/interim-responses.ts';
import type { AddressOptions } from '#mail/deliver/route/web-host-addresses.ts';
import { isForbidden } from '#platform/vendor/mx-connect.ts';
import { hostOf, problemOf } from './endpoint-url.ts';
import { createLookup, sentenceOf } from './guarded-post.ts';

/** `take` is called with each chunk before the next is read, and may reject; a `signal` with a reason of one sentence ends all. */
export type Download = (
  url: string,
  take: (bytes: number) => Promise<void>,
  signal: AbortSignal,
) => Promise<Buffer>;

const maxRedirects = 5;
const redirects = [301, 302, 303, 307, 308];
const maxLength = 2048;
/** Whoever reads the body learns of it; without a listener it would end the process. */
const ignored = () => {};

export function createDownload(options: AddressOptions): Download {
  const lookup = createLookup(options);

  function open(url: URL, signal: AbortSignal): Promise<IncomingMessage> {
    const request = url.protocol === 'http:' ? requestHttp : requestHttps;
    return new Promise((resolve, reject) => {
      const requestOptions = {
        headers: { 'user-agent': 'Postern-Attachments', accept: '*/*', 'accept-encoding': 'identity' },
        agent: false as const,
        lookup,
        signal,
      };
      limitInterimResponses(request(url, requestOptions))
        .on('response', (response) => resolve(response.on('error', ignored)))
        .on('error', (error) => reject(new Error(sentenceOf(hostOf(url), error))))
        // Node reports no error if the server switches protocols (101).
        .on('close', () => reject(new Error(`${hostOf(url)} ended the connection without an answer`)))
        .end();
    });
  }

  async function get(url: URL, take: (bytes: number) => Promise<void>, signal: AbortSignal, left: number) {
    const problem = options.allowPrivate ? null : problemOf(url, 'POSTERN_ATTACHMENT_ALLOW_PRIVATE');
    if (problem) throw new Error(problem);
    const host = hostOf(url);
    // A literal address is not looked up, so `lookup` cannot check it.
    if (isIP(host) && isForbidden(host, options.allowPrivate))
      throw new Error(`${host} is a forbidden address`);
    const response = await open(url, signal);
    try {
      const status = response.statusCode!;
      if (!redirects.includes(status)) return await bodyOf(response, host, take);
      if (left === 0) throw new Error(`${host} redirects more than ${maxRedirects} times`);
      const next = parseFileUrl(response.headers.location ?? '', url);
      if (!next) throw new Error(`${host} redirects to something that is not a URL`);
      response.destroy();
      return await get(next, take, signal, left - 1);
    } finally {
      response.destroy();
    }
  }

  return async (text, take, signal) => {
    try {
      return await get(parseFileUrl(text)!, take, signal, maxRedirects);
    } catch (error) {
      throw signal.aborted ? signal.reason : error;
    }
  };
}

/** Null if a file cannot be fetched from there. Credentials would appear in logs. */
export function parseFileUrl(text: string, base?: URL): URL | null {
  const url = URL.parse(text, base?.href);
  if (!url || !['http:', 'https:'].includes(url.protocol) || url.href.length > maxLength) return null;
  return url.username || url.password ? null : url;
}

/**
 * Otherwise the file ends where the connection does (RFC 9112 section 6.3), and Node tells no end that was wanted from one that
 * was not, in particular not over TLS (section 9.8).
 */
function saysItsEnd({ 'content-length': length, 'transfer-encoding': coding }: IncomingHttpHeaders): boolean {
  return coding === undefined ? length !== undefined : coding.trim().toLowerCase() === 'chunked';
}

/**
 * A chunk costs five bytes of the server and some microseconds of ours (RFC 9112 section 7.1): it must have ten at least, on
 * average.
 */
const maxOverhead = 1.5;
/** More than a response's header and its interim responses have, and as much as one read from the connection. */
const headerBytes = 128 * 1024;

async function bodyOf(response: IncomingMessage, host: string, take: (bytes: number) => Promise<void>) {
  const { statusCode, headers } = response;
  if (statusCode !== 200) throw new Error(`${host} answers HTTP ${statusCode}`);
  const encoding = headers['content-encoding'] ?? 'identity';
  if (encoding !== 'identity') throw new Error(`${host} sends the file compressed, which was not asked for`);
  if (!saysItsEnd(headers))
    throw new Error(
      `${host} sends neither Content-Length nor chunks, so a file that was cut off would look whole`,
    );
  const chunks: Buffer[] = [];
  let length = 0;
  const iterator = (response as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
  for (;;) {
    const { value, done } = await iterator.next().catch(() => {
      throw new Error(`${host} closed the connection before the end of the file`);
    });
    if (done) break;
    await take(value.length);
    chunks.push(value);
    length += value.length;
    if ((response.socket?.bytesRead ?? 0) > length * maxOverhead + headerBytes)
      throw new Error(`${host} sends the file in chunks of a few bytes`);
  }
  if (!response.complete) throw new Error(`${host} closed the connection before the end of the file`);
  if (chunks.length === 0) throw new Error(`${host} sends an empty file`);
  return Buffer.concat(chunks);
}
