/**
 * Takes the content of a message from what a client sends after DATA, in lines that end with CRLF: up to the line with a dot
 * alone, and without the dots that are added to lines that begin with one (RFC 5321 section 4.5.2). Other text after one dot
 * stays as it is, because some clients add none.
 *
 * smtp-server's parser does the same, but passes on each piece between two such dots separately, in its own turn of the event
 * loop: a message that consists of them takes a hundred times as long, and many times its memory.
 */
import type { MessageChunk } from '#platform/vendor/smtp-server.ts';

const cr = 0x0d;
const lf = 0x0a;
const dot = 0x2e;

export class MessageContent {
  /** The beginning of the line. After 'dot' and 'dot cr' these bytes are not part of the content yet. */
  #line: 'empty' | 'dot' | 'dot cr' | 'text' = 'empty';

  take(chunk: Buffer): MessageChunk {
    const isPlain = this.#line === 'text' || (this.#line === 'empty' && chunk[0] !== dot);
    if (!isPlain || chunk.includes('\n.')) return this.#unstuffed(chunk);
    this.#line = chunk.at(-1) === lf ? 'empty' : 'text';
    return { content: chunk, used: chunk.length, isEnd: false };
  }

  #unstuffed(chunk: Buffer): MessageChunk {
    // With a dot and a CR of the chunk before.
    const bytes = Buffer.allocUnsafe(chunk.length + 2);
    let length = 0;
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at]!;
      if (this.#line === 'empty' && byte === dot) {
        this.#line = 'dot';
        continue;
      }
      if (this.#line === 'dot' && byte === cr) {
        this.#line = 'dot cr';
        continue;
      }
      if (this.#line === 'dot cr' && byte === lf) {
        this.#line = 'empty';
        return { content: bytes.subarray(0, length), used: at + 1, isEnd: true };
      }
      if (this.#line === 'dot cr' || (this.#line === 'dot' && byte !== dot)) bytes[length++] = dot;
      if (this.#line === 'dot cr') bytes[length++] = cr;
      bytes[length++] = byte;
      this.#line = byte === lf ? 'empty' : 'text';
    }
    return { content: bytes.subarray(0, length), used: chunk.length, isEnd: false };
  }
}
