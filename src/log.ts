/** The service's own log on standard output: JSON lines, or readable ones on a terminal. */
import pino, { type Logger } from 'pino';
import pretty from 'pino-pretty';

export type Log = Logger & {
  /** Takes lines of the mail log as they are, many at a time; null where they are not for this format. */
  lines: ((text: string) => void) | null;
};

/** Lines are written together, at the latest after so many milliseconds, and when the process ends. */
const gathered = { sync: false, minLength: 8 * 1024, periodicFlush: 50 };

export function createLog(config: { logLevel: string; logFormat: 'json' | 'pretty' }): Log {
  const options = {
    level: config.logLevel,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (level: string) => ({ level }) },
  };
  if (config.logFormat === 'json') {
    const stream = pino.destination(gathered);
    const log = pino(options, stream);
    const lines = (text: string) => void (log.isLevelEnabled('info') && stream.write(text));
    return Object.assign(log, { lines });
  }
  const log = pino(options, pretty({ colorize: process.stdout.isTTY, translateTime: 'SYS:HH:MM:ss.l' }));
  return Object.assign(log, { lines: null });
}
