/**
 * The decisions behind a listener: who may log in, which senders and recipients are accepted, what happens to a message.
 * A step accepts by returning and refuses by throwing an SmtpRefusal; any other error is an error of the server, and the
 * client is told to retry (451). `onMessage` must return only after its commit.
 */
import type { ByteHold } from '#platform/base/limits/byte-budget.ts';

export interface Client {
  /** Behind a trusted proxy, the client address that the proxy reports. */
  address: string;
  /** Name from EHLO or HELO. */
  helo: string;
  tls: { protocol: string; cipher: string } | null;
}

export interface MailSession<User> {
  id: string;
  client: Client;
  /** Result of `authenticate`; null without AUTH. */
  user: User;
  /** Aborted when the connection ends or the server stops. */
  ending: AbortSignal;
  /** The same object for all steps of a transaction. */
  transaction: Transaction;
}

export interface Transaction {
  /** The size that MAIL declares (RFC 1870); null if it does not. */
  size: number | null;
}

/** The bounds of one message, from DATA on. */
export interface MessageBounds {
  /** Octets. */
  largest: number;
  /** Its memory. */
  hold: ByteHold;
}

export interface Envelope {
  /** Empty for the null sender. */
  from: string;
  to: string[];
  /** REQUIRETLS was given with MAIL (RFC 8689). */
  requireTls: boolean;
  /** MAIL had SMTPUTF8. */
  isUtf8: boolean;
}

export interface MailHandler<User> {
  /** AUTH PLAIN and LOGIN. Null: AUTH is not offered, and mail is accepted without it. */
  authenticate: ((name: string, password: string, client: Client) => Promise<User>) | null;
  /** The organization whose connection and memory it is after AUTH; until then, and without AUTH, the client's network. */
  organizationOf?(user: User): string;
  /** The size of the largest message, announced to clients and asked for at each connection; without it, the port's own. */
  largestMessage?(): Promise<number>;
  /** Called at DATA; null, or without it: the bounds and the memory of the port. */
  boundsOf?(session: MailSession<User>): MessageBounds | null;
  /** Empty address: the null sender. */
  onMailFrom(address: string, session: MailSession<User>): Promise<void>;
  onRcpt(address: string, session: MailSession<User>): Promise<void>;
  /** Returns the text of the 250, without codes. All line ends in the bytes are CRLF. */
  onMessage(raw: Buffer, envelope: Envelope, session: MailSession<User>): Promise<string>;
  /** Called with a message that is refused before onMessage, for its form or size. */
  onUnread?(reason: string, to: string[], session: MailSession<User>): void;
}

/** A refusal with the codes of RFC 5321 and RFC 3463. 421 also ends the connection. */
export class SmtpRefusal extends Error {
  readonly code: number;
  readonly enhanced: string;

  constructor(code: number, enhanced: string, text: string, options?: ErrorOptions) {
    super(text, options);
    this.name = 'SmtpRefusal';
    this.code = code;
    this.enhanced = enhanced;
  }
}
