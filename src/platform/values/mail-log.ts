/**
 * The mail log, for operators to grep: lines of eight verbs, on standard output and in `log/mail.log` in the data directory
 * (rotated by size, the newest ten kept). Every line is a JSON object with a sentence in `msg`.
 *
 *   accepted   a send was committed; one line per recipient
 *   refused    a send, or one of its recipients, was not accepted; `category` is the error code, or why the one was skipped
 *   repeated   a send was ignored, because it repeats an earlier one, whose email it names
 *   attempted  a host was contacted, or could not be reached
 *   delivered  a host accepted the message
 *   deferred   the attempt failed for now; `nextAttemptAt` is the time of the next one
 *   bounced    the delivery failed permanently; `category` is the reason, `expired` among them
 *   received   mail came in for an application; `category` is the action of its route
 *
 * The ids lead from line to line: `accepted` has the ids of the request, the email and the delivery, and the Message-ID;
 * all lines have the email's id, those of attempts the delivery's; the reply to an accepted message usually has the id
 * that the remote host gave it. `postern logs --id` follows them.
 *
 * The log is not durable: lines may be lost with the process or to a full disk. The database is authoritative.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createStream, type RotatingFileStream } from 'rotating-file-stream';
import { type Clock, iso } from '#platform/base/clock.ts';
import type { Log } from '#platform/base/log.ts';
import { sanitize, sanitizeJson } from '#platform/base/sanitize.ts';

export type Verb =
  | 'accepted'
  | 'refused'
  | 'repeated'
  | 'attempted'
  | 'delivered'
  | 'deferred'
  | 'bounced'
  | 'received';

export interface MailLogLine {
  /** Not in `refused`, unless other recipients were accepted. */
  emailId?: string;
  /** In `received`, the id of the record; absent if the mail was dropped. */
  receivedId?: string;
  orgId: string;
  /** Not in `refused` if the request could not be read. */
  recipient?: string;
  /** In `accepted`, for a recipient that is not in `to`. */
  kind?: 'cc' | 'bcc';
  /** The recipient's domain. */
  destination?: string | undefined;
  from?: string;
  tags?: Record<string, string>;
  /** Not of mail without a stream. */
  stream?: string;
  deliveryId?: string;
  /** The header field Message-ID, without its angle brackets. */
  messageId?: string;
  /** X-Request-Id of the call. */
  requestId?: string | undefined;
  /** In `accepted`, the names of members that were ignored. */
  ignored?: string;
  /** In `refused`, the id of the API key. */
  keyId?: string;
  host?: string | null;
  address?: string | null;
  reply?: string | null;
  /** The protocol. */
  tls?: string | null;
  cipher?: string | null;
  /** The group of the key exchange. */
  group?: string | null;
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
  return new RotatingMailLog(dataDir, clock, log);
}

class RotatingMailLog implements MailLog {
  readonly #directory: string;
  readonly #clock: Clock;
  readonly #log: Log;
  #file: RotatingFileStream;
  #failedAt = Number.NEGATIVE_INFINITY;
  /** Lines for standard output and the file. */
  #buffered = '';
  /** Lines that the file has not accepted yet. */
  #waiting = '';
  #timer: NodeJS.Timeout | undefined;

  constructor(dataDir: string, clock: Clock, log: Log) {
    this.#directory = join(dataDir, 'log');
    this.#clock = clock;
    this.#log = log;
    this.#file = this.#open();
  }

  write(verb: Verb, sentence: string, line: MailLogLine): void {
    const msg = `${verb} ${sentence}`;
    const time = iso(this.#clock.now());
    this.#buffered += `${JSON.stringify({ level: 'info', time, event: verb, msg, ...line })}\n`;
    if (this.#buffered.length >= flushLength) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), flushMs);
    if (!this.#log.writeLines) this.#log.info(sanitize(msg));
  }

  close(): Promise<void> {
    this.#flush();
    const file = this.#file;
    return new Promise((resolve) => (file.destroyed ? resolve() : file.end(resolve)));
  }

  #open(): RotatingFileStream {
    const stream = createStream('mail.log', { path: this.#directory, size: maxFileSize, maxFiles });
    // A full disk must not stop the mail: lines are lost, and the reason is logged.
    stream.on('error', (error) => {
      if (this.#file === stream) this.#failedAt = this.#clock.now();
      this.#log.warn({ err: error }, 'the mail log cannot be written');
    });
    stream.on('warning', (error) => this.#log.warn({ err: error }, 'the mail log cannot be rotated'));
    return stream;
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    // The file may be followed in a terminal.
    const lines = sanitizeJson(this.#buffered);
    this.#buffered = '';
    this.#log.writeLines?.(lines);
    if (this.#waiting.length < maxWaiting) this.#waiting += lines;
    this.#writeWaiting();
  }

  /** If the file cannot be written now, the lines wait for the next flush. */
  #writeWaiting(): void {
    if (this.#file.destroyed && this.#clock.now() >= this.#failedAt + retryDelayMs) {
      this.#file = this.#open();
      // The last line in the file may be incomplete.
      this.#file.write('\n');
    }
    if (this.#file.destroyed || this.#file.writableLength >= maxWaiting) return;
    this.#file.write(this.#waiting);
    this.#waiting = '';
  }
}
