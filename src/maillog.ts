/**
 * The mail log: what an operator greps. Five verbs, one line each, to standard output and to `log/mail.log` in the
 * data directory (rotated by size, the newest ten kept). Every line is a JSON object with the sentence in `msg`.
 *
 *   accepted   a send was committed, one line a recipient
 *   attempted  a host was talked to, or could not be
 *   delivered  a host took the message
 *   deferred   not now; `nextAttemptAt` says when again
 *   bounced    never; `category` says why, `expired` among them
 *
 * A log is no durable state: a line may be lost with the process, the database is what counts.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createStream } from 'rotating-file-stream';
import { type Clock, iso } from './clock.ts';
import type { Log } from './log.ts';

export type Verb = 'accepted' | 'attempted' | 'delivered' | 'deferred' | 'bounced';

export interface MailLine {
  emailId: string;
  orgId: string;
  recipient: string;
  /** The recipient's domain. */
  destination: string;
  from?: string;
  tags?: Record<string, string>;
  /** X-Request-Id of the call that was accepted. */
  requestId?: string;
  host?: string | null;
  address?: string | null;
  reply?: string | null;
  tls?: string | null;
  attempt?: number;
  ms?: number;
  category?: string | null;
  nextAttemptAt?: string | null;
}

export interface MailLog {
  write(verb: Verb, sentence: string, line: MailLine): void;
  close(): Promise<void>;
}

const largestFile = '50M';
const filesKept = 10;

export function mailLogFile(dataDir: string): string {
  return join(dataDir, 'log', 'mail.log');
}

export function createMailLog(dataDir: string, clock: Clock, log: Log): MailLog {
  mkdirSync(join(dataDir, 'log'), { recursive: true });
  const file = createStream('mail.log', {
    path: join(dataDir, 'log'),
    size: largestFile,
    maxFiles: filesKept,
  });
  // A full disk must not stop the mail: the line is lost, the reason is said.
  file.on('error', (error) => log.warn({ err: error }, 'the mail log cannot be written'));
  file.on('warning', (error) => log.warn({ err: error }, 'the mail log cannot be rotated'));
  return {
    write(verb, sentence, line) {
      const msg = `${verb} ${sentence}`;
      file.write(`${JSON.stringify({ time: iso(clock.now()), event: verb, msg, ...line })}\n`);
      log.info({ mail: { event: verb, ...line } }, msg);
    },
    close: () => new Promise((resolve) => file.end(resolve)),
  };
}
