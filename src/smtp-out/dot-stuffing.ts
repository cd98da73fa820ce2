/**
 * Encodes a message for DATA: doubles a dot at the beginning of a line (RFC 5321 section 4.5.2) and completes a bare CR
 * or LF to CRLF, because servers that disagree on line ends make SMTP smuggling possible. Composed messages have no
 * bare CR or LF, so this does not break their signatures.
 */

/** A CR without LF, an LF without CR, and a dot after either or at the beginning of the message. */
const changed = /\r(?!\n)|(?<!\r)\n|(?<![^\r\n])\./;
const everyChange = new RegExp(changed, 'g');

/** The encoded message, and the final dot with CRLF, preceded by another CRLF if the message does not end with one. */
export function dotStuffed(message: Buffer): [Buffer, string] {
  // latin1: one character for each byte.
  const text = message.toString('latin1');
  const isPlain = !changed.test(text);
  const bytes = isPlain
    ? message
    : Buffer.from(
        text.replace(everyChange, (found) => (found === '.' ? '..' : '\r\n')),
        'latin1',
      );
  return [bytes, bytes.length === 0 || bytes.at(-1) === 0x0a ? '.\r\n' : '\r\n.\r\n'];
}
