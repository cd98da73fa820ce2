/**
 * Encodes a message for DATA: doubles a dot at the beginning of a line (RFC 5321 section 4.5.2) and completes a bare CR
 * or LF to CRLF, because servers that disagree on line ends make SMTP smuggling possible. Composed messages have no
 * bare CR or LF, so this does not break their signatures.
 */

/** A CR without LF, an LF without CR, and a dot after either or at the beginning of the message. */
const changed = /\r(?!\n)|(?<!\r)\n|(?<![^\r\n])\./;

const lf = 0x0a;
const cr = 0x0d;
const dot = 0x2e;

/** The encoded message or the piece of one that `endOfPiece` gives. */
export function dotStuffed(piece: Buffer): Buffer {
  // latin1: one character for each byte. Most messages have nothing to change, which the expression finds fastest.
  return changed.test(piece.toString('latin1')) ? stuffed(piece) : piece;
}

function stuffed(piece: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(2 * piece.length);
  let length = 0;
  let before = lf;
  for (let at = 0; at < piece.length; at++) {
    const byte = piece[at]!;
    if (before === cr && byte !== lf) bytes[length++] = lf;
    if (byte === lf && before !== cr) bytes[length++] = cr;
    if (byte === dot && (before === cr || before === lf)) bytes[length++] = dot;
    bytes[length++] = byte;
    before = byte;
  }
  if (before === cr) bytes[length++] = lf;
  return bytes.subarray(0, length);
}

/** With CRLF, preceded by another CRLF if the message does not end with one. */
export function finalDot(lastPiece: Buffer): string {
  return lastPiece.length === 0 || lastPiece.at(-1) === lf ? '.\r\n' : '\r\n.\r\n';
}

const pieceLength = 64 * 1024;

/** The end of the piece that begins here: the end of a line. Only a small part of a large message is encoded at once. */
export function endOfPiece(message: Buffer, start: number): number {
  const near = start + pieceLength;
  return near < message.length ? message.indexOf(lf, near) + 1 || message.length : message.length;
}
