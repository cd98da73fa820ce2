/**
 * Compresses large text responses with gzip if the client accepts it (RFC 9110 section 12.5.3). Live event streams are
 * not compressed, because each event must leave immediately; nor are images, which are small.
 */
import { pipeline, type Readable } from 'node:stream';
import { promisify } from 'node:util';
import { createGzip, gzip } from 'node:zlib';
import type { Context, Middleware } from 'koa';

/** A smaller response fits into a few packets anyway. */
const min = 4096;

const text = /^(application\/json|text\/(?!event-stream)[\w.+-]+)\s*(;|$)/i;
const zip = promisify(gzip);

export const compressText: Middleware = async (context, next) => {
  await next();
  const { body } = context;
  if (!body || context.response.get('Content-Encoding') || !text.test(context.response.get('Content-Type')))
    return;
  const isStream = isReadable(body);
  const bytes = isStream ? null : bytesOf(body);
  if (bytes && bytes.length < min) return;
  context.vary('Accept-Encoding');
  if (context.method === 'HEAD' || context.acceptsEncodings('gzip', 'identity') !== 'gzip') return;
  context.body = bytes ? await zippedOnce(bytes) : compressed(body as Readable);
  context.set('Content-Encoding', 'gzip');
};

/** Documents of our own are the same Buffer each time. */
const zippedBuffers = new WeakMap<Buffer, Promise<Buffer>>();

function zippedOnce(bytes: Buffer): Promise<Buffer> {
  const zipped = zippedBuffers.get(bytes) ?? zip(bytes);
  zippedBuffers.set(bytes, zipped);
  return zipped;
}

function isReadable(body: unknown): body is Readable {
  return typeof (body as Readable).pipe === 'function';
}

/** The bytes that Koa would send. */
function bytesOf(body: Exclude<Context['body'], Readable>): Buffer {
  if (Buffer.isBuffer(body)) return body;
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
}

/** An error of the stream cuts the response off, as it does without compression. */
function compressed(body: Readable): Readable {
  return pipeline(body, createGzip(), () => {});
}
