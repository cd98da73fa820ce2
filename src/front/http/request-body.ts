/**
 * Reads the body of a request, JSON, CSV or a form. Refuses a body that is too large (without reading it) or arrives too
 * slowly, one that exceeds the limits of its route (body-limits.ts), and JSON that is not UTF-8. A compressed body is
 * decoded, and its limits are those of the decoded body.
 */
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { setImmediate as yieldToOthers } from 'node:timers/promises';
import type { ByteHold } from '#platform/base/limits/byte-budget.ts';
import { transferRate } from '#platform/base/minimum-rate.ts';
import { Refusal } from '#platform/values/refusal.ts';
import { requireStillAllowed, UncountedRefusal } from './authorize.ts';
import { type CsvBody, type FormBody, fieldCounter, type JsonBody } from './body-limits.ts';
import { decodedBody } from './content-encoding.ts';
import { chunksOf } from './joined-chunks.ts';
import { JsonCounter } from './json-counter.ts';
import { isUrlencoded } from './urlencoded.ts';

export type ReadableBody = JsonBody | FormBody | CsvBody;

/**
 * `slot` counts the bytes that arrive. `check` is called with each chunk in place of the counter of the limits; what it throws
 * refuses the body. A key that has been revoked meanwhile is refused.
 */
export async function readBody(
  request: IncomingMessage,
  slot: Pick<ByteHold, 'add'>,
  body: ReadableBody,
  check = counterOf(body, request.headers['content-type'] ?? ''),
): Promise<Buffer> {
  requireType(request.headers['content-type'], body.kind);
  const limit = body.largest;
  const { source, stop } = decodedBody(request);
  const monitor = monitorBody(request, source, slot, { check, limit });
  const announced = source === request ? request.headers['content-length'] : undefined;
  const collected = collectBody(source, limit, announced).catch((error: Error) => {
    throw error instanceof BodyTooLarge ? tooLarge(limit) : new Refusal('BAD_REQUEST', problemOf(error));
  });
  const bytes = await Promise.race([collected, monitor.refused]).finally(() => {
    monitor.stop();
    stop();
  });
  await requireStillAllowed(request);
  return bytes;
}

/** zlib's errors have codes such as Z_DATA_ERROR; Z_BUF_ERROR is its name for an end in the middle. */
function problemOf({ code }: NodeJS.ErrnoException): string {
  if (!code?.startsWith('Z_')) return 'The connection ended before the whole body arrived.';
  return 'The body is not what its Content-Encoding says, or it has been cut off.';
}

function tooLarge(limit: number): Refusal {
  const message = `The body is larger than ${sizeOf(limit)}.`;
  return new Refusal('BAD_REQUEST', message, { reason: 'BODY_TOO_LARGE' });
}

/** The parts of a multipart form are counted by its parser, which stops at the limits; a CSV by its reader, line by line. */
function counterOf(body: ReadableBody, contentType: string): (chunk: Buffer) => void {
  if (body.kind === 'json') {
    const counter = new JsonCounter(body.limits);
    return (chunk) => counter.check(chunk);
  }
  return body.kind === 'form' && isUrlencoded(contentType) ? fieldCounter(body) : () => {};
}

/**
 * Checks a body chunk by chunk while it arrives. Reading stops when the body is refused. `source`: the request, or what it is
 * decoded to; it is what memory holds and limits count. What arrives is limited, too, because it can decode to nothing.
 */
function monitorBody(
  request: IncomingMessage,
  source: Readable,
  slot: Pick<ByteHold, 'add'>,
  { check, limit }: { check: (chunk: Buffer) => void; limit: number },
) {
  const { promise: refused, reject } = Promise.withResolvers<never>();
  const refuse = (refusal: unknown) => {
    stop();
    source.pause();
    reject(refusal);
  };
  const startTimer = () => transferRate.watch(() => refuse(tooSlow()));
  let timer = startTimer();
  const restartTimer = () => {
    timer.stop();
    timer = startTimer();
  };
  const stopTimer = () => timer.stop();

  let arrived = 0;
  let pieces = 0;
  function arrive(chunk: Buffer): void {
    timer.received(chunk.length);
    arrived += chunk.length;
    pieces += 1;
    const chunks = chunksOf(request) ?? pieces;
    if (chunks > maxSmallChunks + arrived / smallestChunk) refuse(tooManyChunks());
    if (source !== request && arrived > limit) refuse(tooLarge(limit));
  }

  function take(chunk: Buffer): void {
    try {
      check(chunk);
    } catch (refusal) {
      refuse(refusal);
      return;
    }
    const fits = slot.add(chunk.length);
    if (fits !== true) void pauseUntil(fits);
  }

  /** The rate timer stops, because the client is not slow while we do not read. */
  async function pauseUntil(fits: Promise<boolean>): Promise<void> {
    source.pause();
    timer.stop();
    const isGiven = await fits;
    if (isStopped) return;
    if (!isGiven) return refuse(new BodyBudgetExceeded());
    restartTimer();
    source.resume();
  }

  let isStopped = false;
  function stop(): void {
    isStopped = true;
    timer.stop();
    request.off('data', arrive).off('pause', stopTimer).off('resume', restartTimer).off('end', stopTimer);
    source.off('data', take);
  }

  request.on('data', arrive);
  // While the decoder has enough, and once it has all, the client owes nothing.
  if (source !== request) request.on('pause', stopTimer).on('resume', restartTimer).on('end', stopTimer);
  source.on('data', take);
  return { refused, stop };
}

/** Each costs some microseconds. After so many, they have at least 16 bytes on average, such as the lines of a list. */
const maxSmallChunks = 10_000;
const smallestChunk = 16;

function tooManyChunks(): Refusal {
  return new Refusal('BAD_REQUEST', 'The body arrives in chunks of a few bytes. Send it in larger ones.');
}

function tooSlow(): Refusal {
  return new Refusal('BAD_REQUEST', 'The body arrived too slowly. Send at least 16 KB a second.');
}

export class BodyBudgetExceeded extends UncountedRefusal {
  constructor(message = 'The server is receiving too many large bodies. Nothing was charged. Retry in 1 s.') {
    super('RATE_LIMIT_EXCEEDED', message, { retryAfterMs: 1000 });
  }
}

export function sizeOf(bytes: number): string {
  return bytes < 1024 * 1024 ? `${bytes / 1024} KiB` : `${bytes / 1024 / 1024} MiB`;
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Other requests run between decoding and parsing a large body, because each step can take a tenth of a second. */
const large = 1024 * 1024;

export async function parseJson(bytes: Buffer): Promise<unknown> {
  try {
    const text = utf8.decode(bytes);
    if (bytes.length > large) await yieldToOthers();
    return JSON.parse(text);
  } catch (error) {
    const notJson = error instanceof SyntaxError;
    throw new Refusal(
      'BAD_REQUEST',
      notJson ? `The body is not JSON: ${error.message}` : 'The body is not UTF-8.',
    );
  }
}

const types = {
  json: { name: 'application/json', pattern: /^application\/json\s*(;\s*charset="?utf-8"?\s*)?$/i },
  // A `header` parameter (RFC 4180 section 3) is accepted and ignored, because headings are recognised anyway.
  csv: { name: 'text/csv', pattern: /^text\/csv\s*(;.*)?$/i },
  // Either form of a form.
  form: {
    name: 'multipart/form-data',
    pattern: /^(multipart\/form-data\s*;|application\/x-www-form-urlencoded\s*(;|$))/i,
  },
};

function requireType(header: string | undefined, kind: ReadableBody['kind']): void {
  const { name, pattern } = types[kind];
  if (header && pattern.test(header)) return;
  const isOfCharset = header?.toLowerCase().startsWith(name);
  const given = header === undefined ? '' : `, not ${JSON.stringify(header.slice(0, 100))}`;
  throw new Refusal('BAD_REQUEST', `Content-Type must be ${name}${isOfCharset ? ' in UTF-8' : ''}${given}.`);
}

export class BodyTooLarge extends Error {}

const smallChunk = 4 * 1024;
const blockSize = 64 * 1024;

/**
 * Collects the bytes of a body. Small chunks are copied together while they arrive: each would otherwise take some hundred bytes
 * of memory, so that a body of 20 MB in chunks of one byte (RFC 9112 section 7.1) would take gigabytes. `announced`: the
 * Content-Length, if there is one. Rejects with BodyTooLarge, or with the stream's error.
 */
export function collectBody(source: Readable, limit: number, announced?: string): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  if (Number(announced) > limit) {
    reject(new BodyTooLarge());
    return promise;
  }
  const pieces: Buffer[] = [];
  let length = 0;
  let block = Buffer.alloc(0);
  /** The bytes in the block, and how many of them are in `pieces`. */
  let [filled, taken] = [0, 0];
  const take = () => {
    if (filled > taken) pieces.push(block.subarray(taken, filled));
    taken = filled;
  };
  const onData = (chunk: Buffer) => {
    length += chunk.length;
    if (length > limit) return fail(new BodyTooLarge());
    if (chunk.length >= smallChunk) {
      take();
      pieces.push(chunk);
      return;
    }
    if (chunk.length > block.length - filled) {
      take();
      block = Buffer.allocUnsafeSlow(blockSize);
      filled = taken = 0;
    }
    filled += chunk.copy(block, filled);
  };
  const fail = (error: Error) => {
    source.off('data', onData);
    source.pause();
    reject(error);
  };
  source.on('data', onData);
  source.once('end', () => {
    take();
    resolve(Buffer.concat(pieces, length));
  });
  source.once('error', fail);
  source.once('close', () => fail(new Error('the connection ended before the body')));
  return promise;
}
