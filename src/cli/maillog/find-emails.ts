/** Finds the emails that an id belongs to, in the whole mail log: the id may be in a later line than those to print. */
import type { LogFile } from './log-file.ts';
import { createKeep, type IdSearch } from './log-filter.ts';

export async function findEmailsInLog(log: LogFile, search: IdSearch): Promise<void> {
  const keep = createKeep({}, search);
  for await (const portion of log.forward()) for (const line of portion) keep(line);
  search.settle();
}
