/** The organization that `postern use` has chosen for the commands on this installation: a small file in its data directory. */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { writeAtomic } from '#platform/base/atomic-file.ts';

const fileIn = (dataDir: string) => join(dataDir, 'chosen-organization');

/** Null: none. */
export function chooseOrganization(dataDir: string, id: string | null): void {
  if (id === null) rmSync(fileIn(dataDir), { force: true });
  else writeAtomic(fileIn(dataDir), `${id}\n`);
}

/** Its id; null if none is chosen. */
export function chosenOrganization(dataDir: string): string | null {
  try {
    return readFileSync(fileIn(dataDir), 'utf8').trim() || null;
  } catch {
    return null;
  }
}
