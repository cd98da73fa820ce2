/** Links to files need no key. They read what a key would: of a paused organization, nothing. */
import { readPause } from '#accounts/rows/pauses.ts';
import type { FileLinks } from '#platform/base/file-links.ts';
import type { Db } from '#platform/database/engine/open.ts';

/** The organization of the file; null if the link reads nothing. */
export async function linkedOrganization(
  db: Db,
  links: Pick<FileLinks, 'read'>,
  ...link: Parameters<FileLinks['read']>
): Promise<string | null> {
  const orgId = links.read(...link);
  return orgId !== null && (await readPause(db, orgId)) === null ? orgId : null;
}
