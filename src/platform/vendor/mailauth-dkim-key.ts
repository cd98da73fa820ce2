/**
 * How mailauth's DKIM verifier reads a key record (RFC 6376 section 3.6.1, RFC 8463). mailauth's index exports only the
 * verification of a whole message; this is its part that judges the record. Loaded on the first call: mailauth takes about
 * 30 MB, and commands that do not need it must not pay for it.
 * Read in mailauth 7.1.0.
 */
import { createRequire } from 'node:module';

type GetPublicKey = (
  type: 'DKIM',
  name: string,
  minBitLength: number,
  resolver: (name: string, type: string) => Promise<string[][]>,
  options: { strict: true; hashAlgo: 'sha256' },
) => Promise<{ publicKey: string; testing: boolean }>;

const require = createRequire(import.meta.url);

/** The public key as PEM. Throws an error that says why verifiers ignore the record. `testing`: the flag `y` is set. */
export async function readDkimKey(record: string): Promise<{ publicKey: string; testing: boolean }> {
  const { getPublicKey }: { getPublicKey: GetPublicKey } = require('mailauth/lib/tools');
  return getPublicKey('DKIM', 'selector.invalid', 1024, async () => [[record]], {
    strict: true,
    hashAlgo: 'sha256',
  });
}
