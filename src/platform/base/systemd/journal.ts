/** Lines for systemd's journal: it takes the priority of a line from a mark before it (sd-daemon(3)). */
import { fstatSync } from 'node:fs';

/** A line without a mark has the priority of the unit (SyslogLevel=), which is that of "info". */
const marks: Record<string, string> = { fatal: '<2>', error: '<3>', warn: '<4>', debug: '<7>', trace: '<7>' };

export const markOf = (level: string): string => marks[level] ?? '';

/** Whether the journal reads this output. A parent process may have passed the variable on and redirected the output. */
export function isJournal(descriptor: 1 | 2, stream = process.env.JOURNAL_STREAM): boolean {
  if (!stream) return false;
  const { dev, ino } = fstatSync(descriptor);
  return stream === `${dev}:${ino}`;
}
