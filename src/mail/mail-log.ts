/**
 * The mail log, for operators to grep: lines of five verbs, on standard output and in `log/mail.log` in the data directory
 * (rotated by size, the newest ten kept). Every line is a JSON object with a sentence in `msg`.
 *
 *   accepted   a send was committed; one line per recipient
 *   attempted  a host was contacted, or could not be reached
 *   delivered  a host accepted the message
 *   deferred   the attempt failed for now; `nextAttemptAt` is the time of the next one
 *   bounced    the delivery failed for good; `category` is the reason, `expired` among them
 *
 * The ids lead from line to line: `accepted` has the ids of the request, the email and the delivery, and the Message-ID;
 * all lines have the email's id, those of attempts the delivery's; the reply to an accepted message usually has the id
 * that the remote host gave it. `postern logs --id` follows them.
 *
 * The log is not durable: lines may be lost with the process or to a full disk. The database is authoritative.
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

/** Lines are written in batches, at this length or after this time. A write per line took a tenth of the time of a mail. */
const flushLength = 32 * 1024;
const flushMs = 50;
/** Lines that cannot be written wait in memory, up to this many bytes; further ones are lost. */
const maxWaiting = 8 * 1024 * 1024;
/** A failed stream cannot be used again; a new one is opened after this time. */
const retryDelayMs = 1000;

export function createMailLog(dataDir: string, clock: Clock, log: Log): MailLog {
  mkdirSync(join(dataDir, 'log'), { recursive: true });
  let file = open();
  let failedAt = Number.NEGATIVE_INFINITY;
  // `buffered` goes to standard output and to the file; `waiting` is what the file has not accepted yet.
  let buffered = '';
  let waiting = '';
  let timer: NodeJS.Timeout | undefined;

  function open() {
    const stream = createStream('mail.log', {
      path: join(dataDir, 'log'),
      size: maxFileSize,
      maxFiles,
    });
    // A full disk must not stop the mail: lines are lost, and the reason is logged.
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
    // The file may be followed in a terminal.
    buffered = sanitizeJson(buffered);
    log.writeLines?.(buffered);
    if (waiting.length < maxWaiting) waiting += buffered;
    buffered = '';
    writeWaiting();
  }

  /** If the file cannot be written now, the lines wait for the next flush. */
  function writeWaiting(): void {
    if (file.destroyed && clock.now() >= failedAt + retryDelayMs) {
      file = open();
      // The last line in the file may be incomplete.
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
