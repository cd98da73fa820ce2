/**
 * Reads a message from DATA into memory, or refuses it. A refused message is still read to its end, because the reply
 * comes after it, but its bytes are dropped.
 */
import type { Readable } from 'node:stream';
import type { ByteHold } from '#platform/base/limits/byte-budget.ts';
import { SmtpRefusal } from '#platform/values/mail-handler.ts';

export interface Bounds {
  /** Bytes of a message. */
  largest: number;
}

/** So many are joined: a chunk takes hundreds of bytes beside its own, and a client may send each byte by itself. */
const maxChunks = 256;
/** Memory is reserved in steps of this size while the message arrives. */
const step = 64 * 1024;

export async function receive(stream: Readable, hold: ByteHold, bounds: Bounds): Promise<Buffer> {
  const chunks: Buffer[] = [];
  const joined: Buffer[] = [];
  let size = 0;
  let held = 0;
  let refusal: SmtpRefusal | null = null;
  // While a message waits for memory it is not read, and so learns of nothing: its client may be gone.
  stream.once('close', () => {
    if (!stream.readableEnded) hold.release();
  });
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (refusal) continue;
    if (size > bounds.largest) refusal = tooLarge(bounds.largest);
    else if (size > held) {
      const more = Math.min(Math.ceil(size / step) * step, bounds.largest) - held;
      held += more;
      if (!(await hold.add(more))) refusal = memoryInUse();
    }
    if (refusal) {
      hold.release();
      chunks.length = 0;
      joined.length = 0;
    } else if (chunks.push(chunk) === maxChunks) joined.push(Buffer.concat(chunks.splice(0)));
  }
  if (refusal) throw refusal;
  return Buffer.concat([...joined, ...chunks], size);
}

function tooLarge(largest: number): SmtpRefusal {
  return new SmtpRefusal(552, '5.3.4', `The message is larger than ${largest} bytes`);
}

function memoryInUse(): SmtpRefusal {
  return new SmtpRefusal(
    451,
    '4.3.1',
    'The server is busy: incoming messages use all the memory reserved for them. Retry in 10 s.',
  );
}
