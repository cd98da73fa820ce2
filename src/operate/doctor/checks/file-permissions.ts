/** Files with mail, secrets or settings that every user of the machine can read. */
import { readdir, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { type FindingDraft, ok, skipped, warning } from '#operate/doctor/finding.ts';
import type { Surroundings } from '#operate/doctor/surroundings.ts';
import type { Config } from '#platform/settings/config.ts';
import { serviceFile } from '#platform/settings/env-file.ts';

/** There may be many logs and backups; a few names are enough in the finding. */
const maxFiles = 1_000;
const maxNamed = 5;

const othersRead = 0o004;
const othersSearch = 0o001;

export async function checkFilePermissions(
  { dataDir }: Pick<Config, 'dataDir'>,
  { env }: Pick<Surroundings, 'env'>,
): Promise<FindingDraft> {
  const { POSTERN_CONFIG, POSTERN_ENV_FILE } = env;
  const single = [serviceFile, POSTERN_CONFIG?.trim(), POSTERN_ENV_FILE?.trim()].filter((path) => !!path);
  const paths = [...(await filesIn(dataDir)), ...single].map((path) => resolve(path!));
  const open: string[] = [];
  let seen = 0;
  for (const path of new Set(paths)) {
    const mode = await modeOf(path);
    if (mode === null) continue;
    seen++;
    if (mode & othersRead && (await isReachable(path))) open.push(path);
  }
  if (seen === 0) return skipped('there are no files yet, or this user may not read the directory');
  if (open.length === 0) return ok('no other user can read the database, secrets and settings');
  const more = open.length > maxNamed ? ` and ${open.length - maxNamed} more` : '';
  return warning(
    `every user of this server can read ${open.slice(0, maxNamed).join(', ')}${more}`,
    `remove that permission: chmod -R o= ${dataDir}, and chmod o= for a file elsewhere`,
  );
}

async function filesIn(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true }).catch(() => []);
  const files = entries.filter((entry) => entry.isFile());
  return files.slice(0, maxFiles).map(({ parentPath, name }) => join(parentPath, name));
}

/** Null: it does not exist, or this user may not look at it. */
async function modeOf(path: string): Promise<number | null> {
  return (await stat(path).catch(() => null))?.mode ?? null;
}

/** Other users cannot reach a file below a directory that they may not search. */
async function isReachable(path: string): Promise<boolean> {
  for (let directory = dirname(path); ; directory = dirname(directory)) {
    const mode = await modeOf(directory);
    if (mode !== null && !(mode & othersSearch)) return false;
    if (directory === dirname(directory)) return true;
  }
}
