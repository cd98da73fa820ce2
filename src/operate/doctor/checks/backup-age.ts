/** The age of the last backup of the SQLite database. */

import { type FindingDraft, ok, skipped, warning } from '#operate/doctor/finding.ts';
import { span } from '#platform/base/span.ts';
import { readLastBackup } from '#platform/database/admin/last-backup.ts';
import type { Config } from '#platform/settings/config.ts';

const dayMs = 86_400_000;

/** Two nights; without nightly backups, a week. */
export function maxBackupAgeMs({ backups }: Pick<Config, 'backups'>): number {
  return backups === null ? 7 * dayMs : 2 * dayMs;
}

export async function checkBackupAge(
  { dataDir, databaseUrl, backups }: Pick<Config, 'dataDir' | 'databaseUrl' | 'backups'>,
  now: number,
): Promise<FindingDraft> {
  if (databaseUrl !== null) return skipped('PostgreSQL is backed up by its own tools, such as pg_dump');
  const last = readLastBackup(dataDir);
  if (last === null)
    return skipped(backups === null ? 'POSTERN_BACKUPS is off' : 'the first one is made in the coming night');
  const found = `the last one is ${span(now - last.at)} old: ${last.file ?? 'standard output'}`;
  if (now - last.at <= maxBackupAgeMs({ backups })) return ok(found);
  return warning(
    found,
    backups === null ? 'run postern backup FILE' : 'the log of the server says why there is no newer one',
  );
}
