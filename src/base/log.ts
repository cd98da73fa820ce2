/**
 * The service's own log on standard output: JSON lines, or readable ones on a terminal. Who reads it may be gone, slow, or
 * a file on a full disk: the mail does not stop for that, and the lines are lost.
 */
import pino, { type Logger } from 'pino';
import { prettyFactory } from 'pino-pretty';

export type Log = Logger & {
  /** Takes lines of the mail log as they are, many at a time; null where they are not for this format. */
  writeLines: ((text: string) => void) | null;
};

interface LogOfProcess extends Log {
  /** For its end: resolves when the lines are written, or cannot be. */
  settled(): Promise<void>;
}

/** Lines are written together, at the latest after so many milliseconds, and when the process ends. */
const buffering = { sync: false, minLength: 8 * 1024, periodicFlush: 50 };
/** Those that are not taken wait, up to so many bytes, and are tried again with the next ones. */
const maxWaiting = 8 * 1024 * 1024;
/** So long is a reader waited for at the end of the process, with a look every tenth of a second. */
const timeoutMs = 2000;

function standardOutput() {
  let refusals = 0;
  let isStuck = false;
  const stream = pino.destination({
    ...buffering,
    maxLength: maxWaiting,
    retryEAGAIN: () => refusals++ < timeoutMs / 100,
  });
  stream.on('error', () => {
    isStuck = true;
  });
  stream.on('write', () => {
    refusals = 0;
    isStuck = false;
  });
  // What is called last of all: by itself it would try a full disk forever.
  const { flushSync } = stream;
  stream.flushSync = () => {
    if (isStuck) return;
    try {
      flushSync.call(stream);
    } catch {
      // The reader has been waited for.
    }
  };
  const settled = () =>
    new Promise<void>((resolve) => {
      stream.flush(() => resolve());
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
  if (config.logFormat === 'json') {
    const log = pino(options, stream);
    const writeLines = (text: string) => void (log.isLevelEnabled('info') && stream.write(text));
    return Object.assign(log, { writeLines, settled });
  }
  const prettify = prettyFactory({ colorize: process.stdout.isTTY, translateTime: 'SYS:HH:MM:ss.l' });
  const log = pino(options, { write: (line) => stream.write(prettify(line)) });
  return Object.assign(log, { writeLines: null, settled });
}
