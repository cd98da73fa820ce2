/**
 * The words in which the fake MX (mx.ts) is told what to say: what a script is asked, and what it may answer; and the
 * scripts that belong to the local part of a recipient, so that most tests need none of their own.
 */

import type { TLSSocketOptions } from 'node:tls';

export type Phase =
  | 'greeting'
  | 'ehlo'
  | 'starttls'
  | 'mail'
  | 'rcpt'
  | 'data'
  | 'receiving'
  | 'dot'
  | 'rset'
  | 'quit';

/**
 * A reply ('250 2.0.0 ok'; the lines of a longer one in an array, the hyphens are put in); 'close': drop the
 * connection and say nothing; 'reset': the same with a RST; 'hang': never say anything again; raw: send just these bytes;
 * undefined: as usual.
 */
export type Reply = string | string[] | { raw: string } | undefined;

/** `receiving` is asked when the first bytes of a message have come: the place to break off in the middle. */
export type Script = { [P in Phase]?: (context: Context) => Reply | Promise<Reply> } & {
  /** Asked before the greeting; 'close' resets the connection (RST). */
  connect?: (context: Context) => 'close' | 'hang' | undefined;
};

export interface Context {
  session: MxSession;
  /** The line this answers; empty where no command was sent. */
  command: string;
  /** In mail the sender, in rcpt the recipient, without the angle brackets. */
  address?: string;
  /** Of this MAIL or RCPT. */
  params?: Params;
  /** The transaction so far, from mail on; in rcpt its `to` has the recipients accepted before. */
  message?: MxMessage;
  /**
   * Counted from 1: in mail, how often this sender has come; in rcpt, this recipient; in data, receiving and dot,
   * its first recipient; everywhere else, the number of the connection.
   */
  attempt: number;
}

/** ESMTP parameters by their names in capitals: { SIZE: '120', SMTPUTF8: true }. */
export type Params = Record<string, string | true>;

export interface MxMessage {
  from: string;
  to: string[];
  /** Of MAIL. */
  params: Params;
  /** The exact bytes, without the dots of transparency and without the final dot. */
  raw: Buffer;
  tls: boolean;
  /** Real time of the final dot. */
  at: number;
  session: MxSession;
  /** What the client was told after the dot; null if nothing. */
  reply: string | null;
}

export interface MxSession {
  /** 1 for the first connection. */
  id: number;
  /** The address that the client came from. */
  from: string;
  tls: boolean;
  /** Every command line, as it came. */
  commands: string[];
  /** Commands and replies, 'C: ' and 'S: '. */
  transcript: string[];
  open: boolean;
}

/** What a recipient's local part makes of this server. */
const mailboxes: Record<string, Script> = {
  unknown: { rcpt: () => '550 5.1.1 no such mailbox' },
  full: { rcpt: () => '552 5.2.2 mailbox full' },
  tempfail: { rcpt: () => '451 4.3.0 try again later' },
  greylist: { rcpt: ({ attempt }) => (attempt === 1 ? '451 4.7.1 greylisted, try again' : undefined) },
  'drop-in-data': { receiving: () => 'close' },
  'drop-after-dot': { dot: () => 'close' },
};

export function mailbox(address: string): Script | undefined {
  const [local = ''] = address.toLowerCase().split(/[@+]/);
  return mailboxes[local];
}

/** What a host does once it has agreed to TLS, if it does not simply speak it. */
export interface TlsSide {
  /** Versions, ciphers, key and so on, instead of Node's defaults and mx.pem. */
  options?: TLSSocketOptions;
  /**
   * In place of the handshake: break off, say nothing or rubbish; 'short-hello': break off at a ClientHello that needs
   * more than one packet, as some old boxes do, else speak TLS.
   */
  handshake?: 'close' | 'reset' | 'hang' | 'rubbish' | 'short-hello';
}
