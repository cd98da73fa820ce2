/**
 * The parser of client input. It refuses invalid input before the input can have an effect:
 *
 * - a bare CR or LF, in commands and messages (RFC 5321 section 2.3.8): if one server reads it as the end of a message and
 *   another as part of it, an attacker can inject mail that the sender never wrote ("SMTP smuggling"). Where other servers
 *   return mail, a bare LF is a line end instead, but never part of the end of a message (bare-line-ends.ts);
 * - input after a command that ends a group (RFC 2920 section 3.1; RFC 3207; RFC 4954): a client that does not wait for
 *   those replies may be forwarding somebody else's bytes;
 * - endless command lines, and messages far beyond the announced size.
 *
 * Input before the violation is processed in order, input after it is not. smtp-server's parser gets one line at a time, so that
 * it never holds unchecked input.
 */
import { CommandParser, type MessageChunk, type Next } from '#platform/vendor/smtp-server.ts';
import { BareLineEnds } from './bare-line-ends.ts';
import { MessageContent } from './message-content.ts';

export type StreamViolation = 'line-end' | 'pipelining' | 'line-length' | 'flood';

export interface StrictParts {
  /** Bytes of a command line, its CRLF included. */
  longestLine: number;
  /** Bytes of a message after which reading stops. */
  largestMessage(): number;
  /** Takes a bare LF for a line end. */
  takesBareLf?: boolean;
  /** Whether the client must wait for the reply to this line. */
  endsGroup(line: string): boolean;
  onViolation(violation: StreamViolation): void;
  /** Bytes of a message have arrived. */
  onMessageBytes(count: number): void;
}

const cr = 0x0d;
const lf = 0x0a;

/** Lines that are processed before other connections get a turn of the event loop. */
const maxInARow = 100;

export class StrictStream extends CommandParser {
  readonly #parts: StrictParts;
  /** Null: bare line ends are refused. */
  readonly #lineEnds: BareLineEnds | null;
  readonly #content = new MessageContent();
  /** The last byte was a CR, so an LF must follow. */
  #afterCr = false;
  /** Bytes of the incomplete line. */
  #begun = 0;
  /** Bytes of the chunk in progress; 0 if there is none. */
  #chunk = 0;

  constructor(parts: StrictParts) {
    super({ maxCommandLength: parts.longestLine });
    this.#parts = parts;
    this.#lineEnds = parts.takesBareLf ? new BareLineEnds() : null;
  }

  protected override receive(chunk: Buffer, done: Next): void {
    // Called again with the bytes that followed a message in its chunk.
    const isRest = this.#chunk > 0;
    if (!isRest) this.#chunk = chunk.length;
    const position = this.#lineEnds ? -1 : bareLineEnd(chunk, this.#afterCr);
    if (!this.#lineEnds) this.#afterCr = chunk.at(-1) === cr;
    this.#serve(position < 0 ? chunk : chunk.subarray(0, position), (error) => {
      if (position >= 0) this.#refuse('line-end');
      if (!isRest) this.#chunk = 0;
      done(error);
    });
  }

  protected override contentOf(chunk: Buffer): MessageChunk {
    return this.#content.take(chunk);
  }

  /** The bytes after a message are checked again: they follow an LF, whatever their chunk ended with. */
  protected override onMessageEnd(hasMore: boolean): void {
    if (hasMore) this.#afterCr = false;
  }

  #refuse(violation: StreamViolation): void {
    if (!this.isClosed) this.#parts.onViolation(violation);
  }

  /** Passes commands on line by line, message bytes as they are. */
  #serve(bytes: Buffer, done: Next): void {
    let rest = bytes;
    let served = 0;
    const nextLine = () => {
      let isAnswered = true;
      while (isAnswered) {
        if (this.isClosed || rest.length === 0) return done();
        if (this.isInMessage) return this.#serveMessage(rest, done);
        const piece = rest.subarray(0, rest.indexOf(lf) + 1 || rest.length);
        rest = rest.subarray(piece.length);
        const endsGroup = this.#begin(piece, rest);
        if (this.isClosed) return done();
        isAnswered = false;
        let isWaiting = false;
        this.parse(piece, (error) => {
          if (error) return done(error);
          if (!isWaiting) isAnswered = true;
          else this.#goOn(endsGroup, nextLine);
        });
        isWaiting = true;
        served += 1;
        if (isAnswered && served % maxInARow === 0) return void setImmediate(nextLine);
      }
    };
    nextLine();
  }

  /** Whether the piece is a command that ends its group. */
  #begin(piece: Buffer, rest: Buffer): boolean {
    const length = this.#begun + piece.length;
    const isWhole = piece.at(-1) === lf;
    this.#begun = isWhole ? 0 : length;
    if (this.#lineEnds && this.#hasBareCr(piece)) this.#refuse('line-end');
    if (length > this.#parts.longestLine) this.#refuse('line-length');
    if (!isWhole) return false;
    const line = this.unfinishedLine + piece.toString('latin1');
    const endsGroup = this.#parts.endsGroup(line.trimEnd());
    if (endsGroup && rest.length > 0) this.#refuse('pipelining');
    return endsGroup;
  }

  #hasBareCr(piece: Buffer): boolean {
    const text = piece.toString('latin1');
    const hasOne = (this.#afterCr && piece[0] !== lf) || /\r[^\n]/.test(text);
    this.#afterCr = text.endsWith('\r');
    return hasOne;
  }

  /** After a command that was answered later: input that arrived meanwhile did not wait for its reply. */
  #goOn(endsGroup: boolean, nextLine: () => void): void {
    if (endsGroup && this.writableLength > this.#chunk) this.#refuse('pipelining');
    nextLine();
  }

  #serveMessage(chunk: Buffer, done: Next): void {
    this.#parts.onMessageBytes(chunk.length);
    if (this.dataBytes > this.#parts.largestMessage()) {
      this.#refuse('flood');
      done();
      return;
    }
    const { bytes, used } = this.#lineEnds?.take(chunk) ?? { bytes: chunk, used: chunk.length };
    const next: Next =
      used < chunk.length ? (error) => (error ? done(error) : this.#serve(chunk.subarray(used), done)) : done;
    this.parse(bytes, chunk.length < largePiece ? next : (error) => void setImmediate(next, error));
  }
}

/** After a piece of this size other connections have their turn, so that one fast sender cannot hold up everybody. */
const largePiece = 16 * 1024;

/** Position of the first bare CR or LF, or -1. A CR at the end is undecided until the next chunk. */
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
