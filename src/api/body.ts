/** The request's JSON body. Refuses what is too large without reading it, and bytes that are not UTF-8. */
import type { IncomingMessage } from 'node:http';
import getRawBody from 'raw-body';
import { Refusal } from '../refusal.ts';

const largest = 20 * 1024 * 1024;

/** What the body may come to: its announced length, or the most that is read. */
export function likelySize({ headers }: IncomingMessage): number {
  return Math.min(Number(headers['content-length'] ?? largest), largest);
}

export async function readBody(request: IncomingMessage): Promise<Buffer> {
  requireJsonType(request.headers['content-type']);
  return getRawBody(request, {
    limit: largest,
    length: request.headers['content-length'] ?? null,
  }).catch((error: Error & { type?: string }) => {
    if (error.type === 'entity.too.large')
      throw new Refusal('BAD_REQUEST', 'The body is larger than 20 MiB.');
    throw new Refusal('BAD_REQUEST', 'The body did not arrive whole.');
  });
}

export function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (error) {
    const notJson = error instanceof SyntaxError;
    throw new Refusal(
      'BAD_REQUEST',
      notJson ? `The body is not JSON: ${error.message}` : 'The body is not UTF-8.',
    );
  }
}

function requireJsonType(header: string | undefined): void {
  if (header && /^application\/json\s*(;\s*charset="?utf-8"?\s*)?$/i.test(header)) return;
  throw new Refusal('BAD_REQUEST', 'Content-Type must be application/json.');
}
