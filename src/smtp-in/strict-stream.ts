/**
 * The parser of what clients send, which refuses what is no SMTP before it means anything:
 *
 * - a CR or an LF by itself, in commands and in messages (RFC 5321 section 2.3.8): what one server takes for the end
 *   of a message, and another for part of it, carries mails that nobody has sent ("SMTP smuggling");
 * - input behind a command that ends a group (RFC 2920 section 3.1; RFC 3207; RFC 4954): whoever does not wait for
 *   those replies is not talking to us;
 * - command lines without end, and messages far beyond the announced size.
 *
 * What came before the fault is served, in order; nothing after it is. Lines go to the library's parser one by one,
 * so that it never holds input that has not been looked at.
 */
import { SMTPStream } from 'smtp-server/lib/smtp-stream.js';

export type StreamFault = 'line-end' | 'pipelining' | 'line-length' | 'flood';

export interface StrictParts {
  /** Octets of a command line, its CRLF included. */
  longestLine: number;
  /** Octets of a message, beyond which no more of it is read. */
  largestMessage: number;
  /** Whether this line is one whose reply has to be waited for. */
  endsGroup(line: string): boolean;
  onFault(fault: StreamFault): void;
  /** Octets of a message have arrived. */
  onMessageBytes(count: number): void;
}

type Next = (error?: Error | null) => void;

const cr = 0x0d;
const lf = 0x0a;

/** Lines that are served before others get their turn of the event loop. */
const maxInARow = 100;

export class StrictStream extends SMTPStream {
  readonly #parts: StrictParts;
  /** The last octet was a CR: an LF must follow. */
  #afterCr = false;
  /** Octets of the line that has begun. */
  #begun = 0;
  /** Octets of the chunk that is being served; 0: none is. */
  #chunk = 0;

  constructor(parts: StrictParts) {
    super({ maxCommandLength: parts.longestLine });
    this.#parts = parts;
  }

  override _write(chunk: Buffer, _: BufferEncoding | 'buffer', next: Next): void {
    if (this.isClosed || chunk.length === 0) return void next();
    // The library comes back through here with what followed a message in its chunk.
    const isRest = this.#chunk > 0;
    if (!isRest) this.#chunk = chunk.length;
    const fault = bareLineEnd(chunk, this.#afterCr);
    this.#afterCr = chunk.at(-1) === cr;
    this.#serve(fault < 0 ? chunk : chunk.subarray(0, fault), (error) => {
      if (fault >= 0) this.#refuse('line-end');
      if (!isRest) this.#chunk = 0;
      next(error);
    });
  }

  /** What followed the message is looked at anew: it stands behind an LF, whatever its chunk ended with. */
  override _endDataMode(chunk: Buffer | false, remainder: Buffer, callback: Next): void {
    if (remainder.length > 0) this.#afterCr = false;
    super._endDataMode(chunk, remainder, callback);
  }

  /** The library takes back what to do after a message after having done it, and a second message's with it. */
  override continue(): void {
    const goOn = this._continueCallback;
    if (typeof goOn !== 'function') {
      super.continue();
      return;
    }
    this._continueCallback = false;
    goOn();
  }

  #refuse(fault: StreamFault): void {
    if (!this.isClosed) this.#parts.onFault(fault);
  }

  /** Commands line by line, a message as it is. */
  #serve(bytes: Buffer, done: Next): void {
    let rest = bytes;
    let served = 0;
    const pump = () => {
      let isAnswered = true;
      while (isAnswered) {
        if (this.isClosed || rest.length === 0) return done();
        if (this._dataMode) return this.#serveMessage(rest, done);
        const piece = rest.subarray(0, rest.indexOf(lf) + 1 || rest.length);
        rest = rest.subarray(piece.length);
        const endsGroup = this.#begin(piece, rest);
        if (this.isClosed) return done();
        isAnswered = false;
        let isWaiting = false;
        super._write(piece, 'buffer', (error) => {
          if (error) return done(error);
          if (!isWaiting) isAnswered = true;
          else this.#goOn(endsGroup, pump);
        });
        isWaiting = true;
        served += 1;
        if (isAnswered && served % maxInARow === 0) return void setImmediate(pump);
      }
    };
    pump();
  }

  /** Whether the piece is a command that ends its group. */
  #begin(piece: Buffer, rest: Buffer): boolean {
    const length = this.#begun + piece.length;
    const isWhole = piece.at(-1) === lf;
    this.#begun = isWhole ? 0 : length;
    if (length > this.#parts.longestLine) this.#refuse('line-length');
    if (!isWhole) return false;
    const line = this._remainder + piece.toString('latin1');
    const endsGroup = this.#parts.endsGroup(line.trimEnd());
    if (endsGroup && rest.length > 0) this.#refuse('pipelining');
    return endsGroup;
  }

  /** A command took its time: what has come meanwhile did not wait for its reply. */
  #goOn(endsGroup: boolean, pump: () => void): void {
    if (endsGroup && this.writableLength > this.#chunk) this.#refuse('pipelining');
    pump();
  }

  #serveMessage(bytes: Buffer, done: Next): void {
    this.#parts.onMessageBytes(bytes.length);
    const isFlood = this.dataBytes > this.#parts.largestMessage;
    if (isFlood) this.#refuse('flood');
    if (isFlood) done();
    else
      super._write(
        bytes,
        'buffer',
        bytes.length < largePiece ? done : (error) => void setImmediate(done, error),
      );
  }
}

/** After a piece of this size, other connections have their turn: a client that sends fast is read as fast as it sends. */
const largePiece = 16 * 1024;

/** Where a CR without its LF stands, or an LF without its CR; -1 where there is none. A CR at the end is open. */
function bareLineEnd(chunk: Buffer, afterCr: boolean): number {
  if (afterCr && chunk[0] !== lf) return 0;
  let at = afterCr ? 1 : 0;
  for (;;) {
    const nextCr = chunk.indexOf(cr, at);
    const nextLf = chunk.indexOf(lf, at);
    if (nextCr < 0) return nextLf;
    if (nextLf < 0) return nextCr === chunk.length - 1 ? -1 : nextCr;
    if (nextLf !== nextCr + 1) return Math.min(nextCr, nextLf);
    at = nextLf + 1;
  }
}
