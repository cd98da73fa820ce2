/**
 * A message from its DATA: whole and in memory, or the reason why not. What is refused is read to its end all the
 * same, for the reply comes after it, but not kept.
 */
import type { Readable } from 'node:stream';
import { SmtpRefusal } from './mail-handler.ts';
import type { MemoryHold } from './memory-budget.ts';

export interface Bounds {
  /** Octets of a message. */
  largest: number;
  /** Octets of a line without its CRLF (RFC 5321 section 4.5.3.1.6 has 998); null: no bound. */
  longestLine: number | null;
}

const lf = 0x0a;
/** Memory is taken in steps of so much, as the message is read. */
const step = 64 * 1024;

export async function receive(stream: Readable, hold: MemoryHold, bounds: Bounds): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  let held = 0;
  let refusal: SmtpRefusal | null = null;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (refusal) continue;
    if (size > bounds.largest) refusal = tooLarge(bounds.largest);
    else if (size > held) {
      held = Math.min(Math.ceil(size / step) * step, bounds.largest);
      if (!(await hold.reach(held))) refusal = noRoom();
    }
    if (refusal) hold.release();
    if (refusal) chunks.length = 0;
    else chunks.push(chunk);
  }
  if (refusal) throw refusal;
  const raw = Buffer.concat(chunks, size);
  if (bounds.longestLine !== null) requireShortLines(raw, bounds.longestLine);
  return raw;
}

function tooLarge(largest: number): SmtpRefusal {
  return new SmtpRefusal(552, '5.3.4', `The message is larger than ${largest} bytes`);
}

function noRoom(): SmtpRefusal {
  return new SmtpRefusal(451, '4.3.1', 'The service takes no more just now; try again in 10 s');
}

function requireShortLines(raw: Buffer, longest: number): void {
  let start = 0;
  for (let end = raw.indexOf(lf); end >= 0; end = raw.indexOf(lf, start)) {
    if (end - 1 - start > longest) {
      const text = `The message has a line of more than ${longest} octets; encode it (quoted-printable or base64)`;
      throw new SmtpRefusal(554, '5.6.0', text);
    }
    start = end + 1;
  }
}
