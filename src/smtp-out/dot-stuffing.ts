/**
 * A message as it goes over the wire: a dot that begins a line is doubled (RFC 5321 section 4.5.2), and a bare CR or
 * LF is made a whole line end, so that nobody on the way takes one for the end of a line where we did not (SMTP
 * smuggling). What composes and signs leaves none; then the bytes are sent as they are.
 */

/** A CR without its LF, a LF without its CR, and a dot after either or at the very beginning. */
const changed = /\r(?!\n)|(?<!\r)\n|(?<![^\r\n])\./;
const everyChange = new RegExp(changed, 'g');

/** In two pieces, the second being the final dot with what it needs before it. */
export function dotStuffed(message: Buffer): [Buffer, string] {
  // One character a byte.
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
