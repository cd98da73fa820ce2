/** What the receivers of scripts/receivers.ts have in common; each is in a file of its own. */

export interface ReceiverOptions {
  /** Where all of it goes; exists, may be entered by everybody (0755), and is used by nobody else. */
  directory: string;
  host: string;
  port: number;
  hostname: string;
  domain: string;
  /** Local parts. */
  mailboxes: string[];
  /** Certificate and key for STARTTLS, in one file. */
  pemFile: string;
  /** Where packages were unpacked that are not installed. */
  packages?: string;
}

export interface Receiver {
  /** With its name. */
  version: string;
  /** Waits for the message of a mailbox; its file as it is. */
  received(mailbox: string): Promise<Buffer>;
  log(): Promise<string>;
  stop(): Promise<unknown>;
}
