/**
 * Collects the bytes of a body. Small chunks are copied together while they arrive: each would otherwise take some hundred bytes
 * of memory, so that a body of 20 MB in chunks of one octet (RFC 9112 section 7.1) would take gigabytes.
 */
import type { Readable } from 'node:stream';

export class BodyTooLarge extends Error {}

const smallChunk = 4 * 1024;
const blockSize = 64 * 1024;

/** `announced`: the Content-Length, if there is one. Rejects with BodyTooLarge, or with the stream's error. */
export function collectBody(source: Readable, limit: number, announced?: string): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  if (Number(announced) > limit) {
    reject(new BodyTooLarge());
    return promise;
  }
  const pieces: Buffer[] = [];
  let length = 0;
  let block = Buffer.alloc(0);
  /** What is in the block, and how much of that is in `pieces`. */
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
