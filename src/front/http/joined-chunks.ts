/**
 * A body may come in chunks of one byte (RFC 9112 section 7.1), six bytes on the wire: ten thousand of them fit in one read of
 * a socket. Small chunks of one read are joined before anybody sees them, and after a few thousand the next read waits for the
 * next turn of the event loop, so that other connections are served in between. The rest of the program sees pieces of a usual
 * size, and can ask how many chunks they were.
 */
import type { IncomingMessage } from 'node:http';

/** In bytes. Larger chunks are passed on as they are. */
const smallChunk = 1024;
/** They take a few milliseconds. */
const maxJoined = 4_000;

const counts = new WeakMap<IncomingMessage, number>();

/** How many chunks of a chunked body have arrived; null for another body. */
export function chunksOf(request: IncomingMessage): number | null {
  return counts.get(request) ?? null;
}

/** Must be called before the first chunk arrives. */
export function joinChunks(request: IncomingMessage): void {
  if (request.headers['transfer-encoding'] === undefined) return;
  const push = request.push.bind(request);
  let pending: Buffer[] = [];
  let count = 0;
  const flush = () => {
    if (pending.length === 0 || request.destroyed) return;
    const joined = pending.length === 1 ? pending[0] : Buffer.concat(pending);
    pending = [];
    push(joined);
  };
  counts.set(request, 0);
  // Node's HTTP parser calls this for each chunk. If it returns false, the socket is not read until the stream wants more.
  request.push = (chunk: Buffer | null) => {
    if (chunk !== null) counts.set(request, ++count);
    if (chunk === null || chunk.length >= smallChunk) {
      flush();
      return push(chunk);
    }
    // Not process.nextTick, which runs between two chunks.
    if (pending.length === 0) setImmediate(flush);
    pending.push(chunk);
    return pending.length < maxJoined && request.readableLength < request.readableHighWaterMark;
  };
}
