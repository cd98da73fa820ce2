/** The common interface of the receivers of scripts/receivers.ts; each is in its own file. */

export interface ReceiverOptions {
  /** Directory for everything. It must exist, be accessible to all users (0755), and be used by nothing else. */
  directory: string;
  host: string;
  port: number;
  hostname: string;
  domain: string;
  /** Local parts. */
  mailboxes: string[];
  /** Certificate and key for STARTTLS, in one file. */
  pemFile: string;
  /** Directory of unpacked packages that are not installed. */
  packages?: string;
  /** More files of its jail, contents by path. */
  files?: Record<string, string>;
}

export interface Receiver {
  /** Name and version. */
  version: string;
  /** Waits for the message of a mailbox and returns its file unchanged. */
  received(mailbox: string): Promise<Buffer>;
  log(): Promise<string>;
  stop(): Promise<unknown>;
}
