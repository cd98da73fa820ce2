/**
 * Signs SHA256SUMS with the private key of POSTERN_RELEASE_KEY (a PEM file), whose public half must be in the committed
 * config/release-key.pem: `postern upgrade` checks the signature with it.
 */
import { createPrivateKey, createPublicKey, generateKeyPairSync, sign } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fingerprintOf, releaseKeyFile, releaseKeys } from '#cli/upgrade/release-signature.ts';

/** Checked before anything is built. Null: the releases of this repository have no key yet. */
export function readSigningKey(isUnsigned: boolean) {
  const file = process.env.POSTERN_RELEASE_KEY;
  if (isUnsigned || (file === undefined && !existsSync(releaseKeyFile))) return null;
  if (file === undefined)
    throw new Error(
      'POSTERN_RELEASE_KEY is not set: name the file of the private key, or add --unsigned for a trial',
    );
  const key = createPrivateKey(readFileSync(file));
  const own = fingerprintOf(createPublicKey(key));
  const known = existsSync(releaseKeyFile) ? releaseKeys(readFileSync(releaseKeyFile, 'utf8')) : [];
  if (!known.some((one) => fingerprintOf(one) === own))
    throw new Error(
      `the public key of ${file} is not in config/release-key.pem: add it and commit it, or use the other key`,
    );
  return key;
}

export function signSums(dist: string, key: ReturnType<typeof readSigningKey>): void {
  if (key === null) {
    console.log('SHA256SUMS is not signed');
    return;
  }
  writeFileSync(join(dist, 'SHA256SUMS.sig'), sign(null, readFileSync(join(dist, 'SHA256SUMS')), key));
}

/** Writes a new private key to the file, and its public half into config/release-key.pem, behind those that are there. */
export function makeKey(file: string): void {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  writeFileSync(file, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600, flag: 'wx' });
  writeFileSync(releaseKeyFile, publicKey.export({ type: 'spki', format: 'pem' }), { flag: 'a' });
  console.log(
    `${file} is the private key: keep it offline. Commit config/release-key.pem. SHA-256: ${fingerprintOf(publicKey)}`,
  );
}
