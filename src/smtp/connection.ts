/**
 * nodemailer's connection with what it lacks for strangers: a bound on what a host may say between two replies, a
 * look at what it has said ahead of its turn, limits read from whole EHLO keywords, and SMTPUTF8 for a message whose
 * header needs it.
 *
 * The only file that touches the library's insides.
 */
import SMTPConnection, { type SMTPConnectionOptions } from 'nodemailer/lib/smtp-connection';

/** The library's own, which its types do not show. */
interface Insides {
  _onData(chunk: Buffer): void;
  _onResponseTooLarge(): void;
  _sendCommand(text: string, shown?: string): void;
  /** Replies that came and wait for their turn. */
  _responseQueue: string[];
  /** The beginning of a line. */
  _remainder: string;
  _ehloLines?: string[];
  _supportedExtensions: string[];
  _maxAllowedSize: number;
}

const Library = SMTPConnection as unknown as new (options: SMTPConnectionOptions) => SMTPConnection & Insides;

/** The largest reply taken from a host; past it, what it speaks is not SMTP. */
const largestReply = 64 * 1024;

/** The library gives up a host's FIN after this long, and tears the connection down. */
const closeMs = 1_000;

/** Ours come first: every deadline of watch.ts is shorter than what the library is given. */
const never = 2 ** 30;

export class Connection extends Library {
  /** The message at hand has addresses beyond ASCII in its header (RFC 6531 section 3.4). */
  isInternational = false;
  #unanswered = 0;

  constructor(options: SMTPConnectionOptions) {
    super({
      ...options,
      maxResponseSize: largestReply,
      socketCloseTimeout: closeMs,
      greetingTimeout: never,
      connectionTimeout: never,
      socketTimeout: never,
      transactionLog: true,
    });
  }

  /** A reply was heard to its end. */
  heard(): void {
    this.#unanswered = 0;
  }

  /** How many replies, whole or begun, have come and were not heard yet. */
  get ahead(): number {
    const replies = this._responseQueue.filter((reply) => reply.trim() !== '').length;
    return replies + (this._remainder.trim() === '' ? 0 : 1);
  }

  offers(keyword: string): boolean {
    return this._supportedExtensions.includes(keyword);
  }

  /** Of RFC 1870; 0 where the host named none. What is no number is none. */
  get sizeLimit(): number {
    const value = this._ehloLines?.map((line) => /^SIZE[ \t]+(\d{1,15})$/i.exec(line)?.[1]).find(Boolean);
    return Number(value ?? 0);
  }

  /** The library would refuse a message by a SIZE that it finds anywhere in the reply. */
  ignoreItsSizeLimit(): void {
    this._maxAllowedSize = 0;
  }

  /** Empty lines are no replies, and are counted like everything else. */
  override _onData(chunk: Buffer): void {
    this.#unanswered += chunk.length;
    if (this.#unanswered > largestReply) this._onResponseTooLarge();
    else super._onData(chunk);
  }

  override _sendCommand(text: string, shown?: string): void {
    const isMail = text.startsWith('MAIL FROM:');
    const international = isMail && this.isInternational && this.offers('SMTPUTF8');
    const withKeyword = international && !text.endsWith(' SMTPUTF8') && !text.includes(' SMTPUTF8 ');
    super._sendCommand(withKeyword ? `${text} SMTPUTF8` : text, shown);
  }
}
