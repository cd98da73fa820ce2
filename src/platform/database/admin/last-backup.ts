/** When and where `postern backup` last wrote a complete backup: a small file in the data directory, for `postern status`. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface LastBackup {
  at: number;
  /** Null: standard output. */
  file: string | null;
}

const fileIn = (dataDir: string) => join(dataDir, 'last-backup');

/** Two backups that end together may both write it; either is right. Without it a backup is complete as well. */
export function noteBackup(dataDir: string, backup: LastBackup): void {
  try {
    writeFileSync(fileIn(dataDir), `${JSON.stringify(backup)}\n`, { mode: 0o600 });
  } catch {
    // The user who makes backups may not be allowed to write here; then `status` says nothing about their age.
  }
}

/** Null if there was none, or the file cannot be read. */
export function readLastBackup(dataDir: string): LastBackup | null {
  try {
    const { at, file } = JSON.parse(readFileSync(fileIn(dataDir), 'utf8'));
    return typeof at === 'number' && (file === null || typeof file === 'string') ? { at, file } : null;
  } catch {
    return null;
  }
}
