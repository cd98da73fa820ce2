/** The secret: whether only its owner can read it, and whether it decrypts the keys in the database. */
import type { Stats } from 'node:fs';
import { stat } from 'node:fs/promises';
import { countSealed } from '#accounts/rows/sealed-columns.ts';
import { createSeal } from '#accounts/seal.ts';
import { type FindingDraft, failure, ok, skipped } from '#operate/doctor/finding.ts';
import { fixedSecrets, readSecrets, type Secrets, secretFile } from '#platform/base/secrets.ts';
import type { Config } from '#platform/settings/config.ts';
import type { OpenDb } from './database.ts';

export async function checkSecret(
  { secret, secretOthers, dataDir }: Pick<Config, 'secret' | 'secretOthers' | 'dataDir'>,
  openDb: OpenDb,
): Promise<FindingDraft> {
  const file = secretFile(dataDir);
  if (secret !== null)
    return checkDecryption(fixedSecrets(secret, ...secretOthers), 'set by POSTERN_SECRET', openDb);
  let found: Stats;
  let secrets: Secrets;
  try {
    found = await stat(file);
    secrets = fixedSecrets(...readSecrets(file), ...secretOthers);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return skipped('it does not exist yet; the first start of the server creates it');
    return failure(message, 'run this command as the user of the server');
  }
  const mode = (found.mode & 0o777).toString(8).padStart(4, '0');
  if ((found.mode & 0o077) !== 0) {
    return failure(`${file} can be read by other users (${mode})`, `chmod 600 ${file}`);
  }
  return checkDecryption(secrets, `${file}, ${mode}`, openDb);
}

async function checkDecryption(secrets: Secrets, what: string, openDb: OpenDb): Promise<FindingDraft> {
  const db = await openDb().catch(() => null);
  const sealed = db && (await countSealed(db, createSeal(secrets).opens).catch(() => null));
  if (!sealed || sealed.all === 0) return ok(what);
  if (sealed.closed === 0) return ok(`${what}; it decrypts all keys in the database`);
  return failure(
    `${what}: it cannot decrypt ${sealed.closed} of the ${sealed.all} keys in the database`,
    'restore the secret that belongs to this database',
  );
}
