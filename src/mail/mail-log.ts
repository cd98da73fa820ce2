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
 * One id leads to another: the line of `accepted` has those of the request, the email, the delivery and the Message-ID,
 * all lines have the email's, those of attempts the delivery's, and the reply to a message that was taken has usually the
 * remote host's. `postern logs --id` follows them.
 *
 * A log is no durable state: a line may be lost with the process or to a full disk, the database is what counts.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createStream } from 'rotating-file-stream';
import { type Clock, iso } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { sanitize, sanitizeJson } from '../base/sanitize.ts';

export type Verb = 'accepted' | 'attempted' | 'delivered' | 'deferred' | 'bounced';

export interface MailLogLine {
  emailId: string;
  orgId: string;
  recipient: string;
  /** The recipient's domain. */
  destination: string;
  from?: string;
  tags?: Record<string, string>;
  deliveryId?: string;
  /** The header field Message-ID, without its angle brackets. */
  messageId?: string;
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
  write(verb: Verb, sentence: string, line: MailLogLine): void;
  close(): Promise<void>;
}

const maxFileSize = '50M';
const maxFiles = 10;

export function mailLogFile(dataDir: string): string {
  return join(dataDir, 'log', 'mail.log');
}

/** Lines are written together: this much of them, or what came in so long. A write for each cost a tenth of a mail. */
const flushLength = 32 * 1024;
const flushMs = 50;
/** Lines that a disk does not take wait here up to so many bytes; then they are lost too. */
const maxWaiting = 8 * 1024 * 1024;
/** A stream that has failed is gone; another is tried this much later. */
const retryDelayMs = 1000;

export function createMailLog(dataDir: string, clock: Clock, log: Log): MailLog {
  mkdirSync(join(dataDir, 'log'), { recursive: true });
  let file = open();
  let failedAt = Number.NEGATIVE_INFINITY;
  /** Lines for both, and what the file has not taken. */
  let buffered = '';
  let waiting = '';
  let timer: NodeJS.Timeout | undefined;

  function open() {
    const stream = createStream('mail.log', {
      path: join(dataDir, 'log'),
      size: maxFileSize,
      maxFiles,
    });
    // A full disk must not stop the mail: the line is lost, the reason is said.
    stream.on('error', (error) => {
      if (file === stream) failedAt = clock.now();
      log.warn({ err: error }, 'the mail log cannot be written');
    });
    stream.on('warning', (error) => log.warn({ err: error }, 'the mail log cannot be rotated'));
    return stream;
  }

  function append(line: string): void {
    buffered += line;
    if (buffered.length >= flushLength) flush();
    else timer ??= setTimeout(flush, flushMs);
  }

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    // Whoever follows the file has a terminal.
    buffered = sanitizeJson(buffered);
    log.writeLines?.(buffered);
    if (waiting.length < maxWaiting) waiting += buffered;
    buffered = '';
    writeWaiting();
  }

  /** What the file cannot take now waits for a later line. */
  function writeWaiting(): void {
    if (file.destroyed && clock.now() >= failedAt + retryDelayMs) {
      file = open();
      // The last line may have been cut off.
      file.write('\n');
    }
    if (file.destroyed || file.writableLength >= maxWaiting) return;
    file.write(waiting);
    waiting = '';
  }

  return {
    write(verb, sentence, line) {
      const msg = `${verb} ${sentence}`;
      const head = { level: 'info', time: iso(clock.now()), event: verb, msg };
      const text = `${JSON.stringify({ ...head, ...line })}\n`;
      append(text);
      if (!log.writeLines) log.info(sanitize(msg));
    },
    close() {
      flush();
      return new Promise((resolve) => (file.destroyed ? resolve() : file.end(resolve)));
    },
  };
}
