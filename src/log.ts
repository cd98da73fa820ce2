/** The service's own log on standard output: JSON lines, or readable ones on a terminal. */
import pino, { type Logger } from 'pino';
import pretty from 'pino-pretty';

export type Log = Logger;

export function createLog(config: { logLevel: string; logFormat: 'json' | 'pretty' }): Log {
  const options = {
    level: config.logLevel,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (level: string) => ({ level }) },
  };
  if (config.logFormat === 'json') return pino(options);
  return pino(
    options,
    pretty({ colorize: process.stdout.isTTY, ignore: 'mail', translateTime: 'SYS:HH:MM:ss.l' }),
  );
}
