/** The request's body, JSON or CSV. Refuses what is too large without reading it, and JSON that is not UTF-8. */
import type { IncomingMessage } from 'node:http';
import getRawBody from 'raw-body';
import { transferRate } from '../minimum-rate.ts';
import { Refusal } from '../refusal.ts';

const largest = 20 * 1024 * 1024;

/** What the body may come to: its announced length, or the most that is read. */
export function likelySize({ headers }: IncomingMessage, most = largest): number {
  return Math.min(Number(headers['content-length'] ?? most), most);
}

/** What a body must be, and how much of it is read. */
export interface BodyForm {
  type: 'application/json' | 'text/csv';
  largest: number;
}

export async function readBody(
  request: IncomingMessage,
  { type, largest: limit }: BodyForm = { type: 'application/json', largest },
): Promise<Buffer> {
  requireType(request.headers['content-type'], type);
  const arrived = getRawBody(request, {
    limit,
    length: request.headers['content-length'] ?? null,
  }).catch((error: Error & { type?: string }) => {
    if (error.type === 'entity.too.large')
      throw new Refusal('BAD_REQUEST', `The body is larger than ${sizeOf(limit)}.`);
    throw new Refusal('BAD_REQUEST', 'The body did not arrive whole.');
  });
  return inTime(request, arrived);
}

/** A body that arrives too slowly is refused, and no more of it is read. */
async function inTime<Body>(request: IncomingMessage, arrived: Promise<Body>): Promise<Body> {
  const { promise: tooSlow, reject } = Promise.withResolvers<never>();
  const timer = transferRate.watch(() => {
    request.pause();
    reject(new Refusal('BAD_REQUEST', 'The body arrived too slowly. Send at least 16 KB a second.'));
  });
  request.on('data', (chunk: Buffer) => timer.received(chunk.length));
  return Promise.race([arrived, tooSlow]).finally(timer.stop);
}

function sizeOf(bytes: number): string {
  return bytes < 1024 * 1024 ? `${bytes / 1024} KiB` : `${bytes / 1024 / 1024} MiB`;
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

export function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(utf8.decode(bytes));
  } catch (error) {
    const notJson = error instanceof SyntaxError;
    throw new Refusal(
      'BAD_REQUEST',
      notJson ? `The body is not JSON: ${error.message}` : 'The body is not UTF-8.',
    );
  }
}

const types = {
  'application/json': /^application\/json\s*(;\s*charset="?utf-8"?\s*)?$/i,
  // It may say whether it has headings (RFC 4180 section 3), which is seen anyway.
  'text/csv': /^text\/csv\s*(;.*)?$/i,
};

function requireType(header: string | undefined, type: BodyForm['type']): void {
  if (header && types[type].test(header)) return;
  throw new Refusal('BAD_REQUEST', `Content-Type must be ${type}.`);
}
