/**
 * The signature of a release: Ed25519 over SHA256SUMS, in SHA256SUMS.sig, checked with the key that the installed program came
 * with (config/release-key.pem), before anything of the release is read. The file may have several keys, so that a new one can
 * follow the old. A fork replaces the file by its own (docs/development.md).
 */
import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Failure } from '#cli/failure.ts';

export const releaseKeyFile = join(import.meta.dirname, '../../../config/release-key.pem');

/** Returns false if this program has no key, and so cannot check a signature. */
export function requireSignature(sums: string, keyFile = releaseKeyFile): boolean {
  if (!existsSync(keyFile)) return false;
  const keys = releaseKeys(readFileSync(keyFile, 'utf8'));
  const file = `${sums}.sig`;
  if (!existsSync(file))
    throw new Failure(
      `${file} does not exist; put that file of the release beside its SHA256SUMS. Nothing was changed`,
    );
  const signature = readFileSync(file);
  const text = readFileSync(sums);
  if (keys.some((key) => verify(null, text, key, signature))) return true;
  throw new Failure(
    `${file} is not a signature of ${sums} by the key of this program (${keys.map(fingerprintOf).join(', ')}), so the release may not be from its publisher. ` +
      'Nothing was changed. Download all files again from the place where the releases are published. If the publisher says that the key has changed, ' +
      'compare the fingerprint that the publisher names, put the new public key into config/release-key.pem of the installed program, and try again',
  );
}

/** Every public key in the text. */
export function releaseKeys(pem: string): KeyObject[] {
  const blocks = pem.match(/-----BEGIN PUBLIC KEY-----[^-]{1,400}-----END PUBLIC KEY-----/g) ?? [];
  return blocks.map((block) => createPublicKey(block));
}

/** As `openssl pkey -pubin -outform DER | sha256sum` shows it. */
export function fingerprintOf(key: KeyObject): string {
  return createHash('sha256')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest('hex');
}
