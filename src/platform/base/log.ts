/**
 * The service's own log on standard output: JSON lines, or readable text for a terminal. If the reader is gone or slow, or
 * standard output is a file on a full disk, lines are lost; mail never stops because of the log.
 */
import { createRequire } from 'node:module';
import pino, { type Logger } from 'pino';
import type PinoPretty from 'pino-pretty';
import { isJournal, markOf } from '#platform/base/systemd/journal.ts';

export type Log = Logger & {
  /** Writes complete JSON lines of the mail log, many at a time; null if the log format is not JSON. */
  writeLines: ((text: string) => void) | null;
};

interface LogOfProcess extends Log {
  /** Called before the process exits. Resolves when the lines are written, or cannot be written. */
  settled(): Promise<void>;
}

/** Lines are written in batches: at this size, after `flushMs`, and at the end of the process. */
const buffering = { sync: false, minLength: 8 * 1024 };
const flushMs = 50;
/** If a write fails, up to this many bytes wait and are tried again with the next lines. */
const maxWaiting = 8 * 1024 * 1024;
/** At the end of the process, a slow reader is waited for this long, with a try every tenth of a second. */
const timeoutMs = 2000;

function standardOutput() {
  let refusals = 0;
  let isStuck = false;
  /** Bytes that the stream has not written; what it drops for want of room is counted until it has nothing left. */
  let unwritten = 0;
  const stream = pino.destination({
    ...buffering,
    maxLength: maxWaiting,
    retryEAGAIN: () => refusals++ < timeoutMs / 100,
  });
  // The stream's own periodic flush would wake an idle process twenty times a second.
  const { write } = stream;
  let willFlush = false;
  const flush = () => {
    willFlush = false;
    stream.flush();
  };
  stream.write = (text) => {
    unwritten += Buffer.byteLength(text);
    if (!willFlush) setTimeout(flush, flushMs).unref();
    willFlush = true;
    return write.call(stream, text);
  };
  stream.on('error', () => {
    isStuck = true;
  });
  stream.on('write', (bytes: number) => {
    unwritten = bytes === 0 ? 0 : unwritten - bytes;
    refusals = 0;
    isStuck = false;
  });
  // A flush does nothing while a write is under way, and writes only a part of much: the rest would wait for the next line.
  stream.on('drain', () => {
    if (unwritten > 0 && !willFlush) stream.flush();
  });
  // pino calls this at exit. By itself it would retry on a full disk forever.
  const { flushSync } = stream;
  stream.flushSync = () => {
    if (isStuck) return;
    try {
      flushSync.call(stream);
    } catch {
      // The wait for the reader is over.
    }
  };
  const settled = () =>
    new Promise<void>((resolve) => {
      stream.on('drain', () => {
        if (unwritten === 0) resolve();
      });
      stream.on('error', () => resolve());
      stream.flush();
      setTimeout(() => {
        isStuck = true;
        resolve();
      }, timeoutMs);
    });
  return { stream, settled };
}

export function createLog(config: { logLevel: string; logFormat: 'json' | 'pretty' }): LogOfProcess {
  const options = {
    level: config.logLevel,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (level: string) => ({ level }) },
  };
  const { stream, settled } = standardOutput();
  const levelOf = (line: string) => /^\{"level":"(\w+)"/.exec(line)?.[1] ?? '';
  const mark = isJournal(1) ? (line: string) => markOf(levelOf(line)) : null;
  if (config.logFormat === 'json') {
    const log = pino(options, mark ? { write: (line) => stream.write(mark(line) + line) } : stream);
    const writeLines = (text: string) => void (log.isLevelEnabled('info') && stream.write(text));
    return Object.assign(log, { writeLines, settled });
  }
  // 29 modules that a service does not need.
  const { prettyFactory }: typeof PinoPretty = createRequire(import.meta.url)('pino-pretty');
  const prettify = prettyFactory({ colorize: process.stdout.isTTY, translateTime: 'SYS:HH:MM:ss.l' });
  const log = pino(options, { write: (line) => stream.write((mark?.(line) ?? '') + prettify(line)) });
  return Object.assign(log, { writeLines: null, settled });
}
