/** The database: whether it answers, its size, and whether its schema fits this version of Postern. */

import { type FindingDraft, failure, ok, skipped, warning } from '#operate/doctor/finding.ts';
import { databaseInfo } from '#platform/database/admin/server-info.ts';
import { requireUsable } from '#platform/database/admin/usable.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { isServed } from '#platform/database/tables/server-running.ts';
import { startService } from '#platform/settings/installation.ts';
import { formatBytes } from './disk.ts';

/** Null: it does not exist yet. Rejects with a DatabaseError, whose message says after a semicolon what to do. */
export type OpenDb = () => Promise<Db | null>;

export async function checkDatabase(openDb: OpenDb): Promise<FindingDraft> {
  let db: Db | null;
  try {
    db = await openDb();
    if (db) await requireUsable(db);
  } catch (error) {
    const [found, ...advice] = (error as Error).message.split('; ');
    return failure(found!, advice.join('; ') || 'check POSTERN_DATABASE_URL and POSTERN_DATA_DIR');
  }
  if (db === null) return skipped('it does not exist yet; the first start of the server creates it');
  const { engine, bytes, unsafe, pending, unknown } = await databaseInfo(db);
  const found = `${engine}, ${formatBytes(bytes)}`;
  if (unknown.length > 0) {
    return failure(
      `${found}; its schema (${unknown.at(-1)}) was made by a newer version of Postern`,
      'run that version, or restore the backup from before the upgrade',
    );
  }
  if (pending.length > 0) {
    return warning(
      `${found}; its schema lacks ${pending.join(', ')}`,
      'make a backup, stop the older version, then run `postern migrate` or start this version',
    );
  }
  if (unsafe.length === 0) return ok(`${found}, its schema up to date`);
  return warning(
    `${found}, its schema up to date; ${unsafe.join(' and ')} off, so a crash of the database machine can lose mail or damage the database`,
    `set ${unsafe.map((name) => `${name} = on`).join(' and ')} in postgresql.conf and reload PostgreSQL${
      unsafe.includes('full_page_writes')
        ? ' (full_page_writes may be off if the storage never tears a page)'
        : ''
    }`,
  );
}

export async function checkServerRunning(openDb: OpenDb, dataDir: string): Promise<FindingDraft> {
  const db = await openDb().catch(() => null);
  if (db === null) return skipped('not known: the database cannot be read');
  if (await isServed(db, dataDir)) return ok('running');
  return warning(
    'no server is running, so no mail is sent',
    `start one (${startService} if it is a service)`,
  );
}
