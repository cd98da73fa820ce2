/**
 * What a listener is for, as its user gives it: whom it lets in, whom it takes mail from and for, what becomes of a
 * message. Each step says yes by returning and no by throwing an SmtpRefusal; anything else that is thrown is
 * trouble of ours, and the client is told to come again (451). `onMessage` returns after its commit, not before.
 */

export interface Client {
  /** Behind a trusted proxy, the address that the proxy saw. */
  address: string;
  /** What it called itself. */
  helo: string;
  tls: { protocol: string; cipher: string } | null;
}

export interface MailSession<User> {
  id: string;
  client: Client;
  /** What `authenticate` returned; null where there is no AUTH. */
  user: User;
}

export interface Envelope {
  /** Empty for the null sender. */
  from: string;
  to: string[];
}

export interface MailHandler<User> {
  /** By AUTH PLAIN and LOGIN. Null: there is no AUTH, and mail is taken without it. */
  authenticate: ((name: string, password: string, client: Client) => Promise<User>) | null;
  /** Empty address: the null sender. */
  onMailFrom(address: string, session: MailSession<User>): Promise<void>;
  onRcpt(address: string, session: MailSession<User>): Promise<void>;
  /** Returns the text of the 250, without code and enhanced code. The bytes have CRLF line ends alone. */
  onMessage(raw: Buffer, envelope: Envelope, session: MailSession<User>): Promise<string>;
}

/** No, with the codes of RFC 5321 and RFC 3463. 421 also ends the connection. */
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
