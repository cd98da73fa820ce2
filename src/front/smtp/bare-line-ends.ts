/**
 * Takes every bare LF and CR in a message for a line end, as Postfix does (smtpd_forbid_bare_newline = normalize), and makes it
 * CRLF. Only the bytes CR LF . CR LF end the message (RFC 5321 section 4.1.1.4): a lone dot between other line ends, which
 * another server may have taken for text, becomes a line of text (SMTP smuggling).
 */

const cr = 0x0d;
const lf = 0x0a;
const dot = 0x2e;

export class BareLineEnds {
  /** CRs that were read since the last other byte. */
  #crs = 0;
  #line: 'empty' | 'dot' | 'text' = 'empty';
  /** The line before this one ended with CRLF; true at the beginning, which follows the line DATA. */
  #isAfterCrLf = true;

  /** The bytes as a strict client would send them, up to the end of the message; and how many of `chunk` they are. */
  take(chunk: Buffer): { bytes: Buffer; used: number } {
    const bytes = Buffer.allocUnsafe(2 * chunk.length + 4);
    let length = 0;
    const endLine = (isEnd: boolean, isCrLf: boolean) => {
      if (this.#line === 'dot' && !isEnd) bytes[length++] = dot;
      bytes[length++] = cr;
      bytes[length++] = lf;
      this.#isAfterCrLf = isCrLf;
      this.#crs = 0;
      this.#line = 'empty';
    };
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at]!;
      if (byte === cr) {
        this.#crs += 1;
      } else if (byte === lf) {
        const isEnd = this.#line === 'dot' && this.#crs === 1 && this.#isAfterCrLf;
        endLine(isEnd, this.#crs > 0);
        if (isEnd) return { bytes: bytes.subarray(0, length), used: at + 1 };
      } else {
        if (this.#crs > 0) endLine(false, false);
        bytes[length++] = byte;
        this.#line = byte === dot && this.#line === 'empty' ? 'dot' : 'text';
      }
    }
    return { bytes: bytes.subarray(0, length), used: chunk.length };
  }
}
