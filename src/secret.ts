/**
 * The service's secret: set by the operator, or made at the first start and kept in the data directory, readable by
 * its owner only. Each use gets a key of its own, derived from it (HKDF, RFC 5869), so that no two uses share one.
 *
 * Losing it makes the DKIM keys in the database unreadable: it belongs in the backup.
 */
import { hkdfSync, randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export type Purpose = 'seal' | 'return-path' | 'tracking' | 'event-cursor';

/** 32 bytes for one purpose. */
export function deriveKey(secret: string, purpose: Purpose): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, 'postern', purpose, 32));
}

/** The configured secret, or the one kept in `dataDir` (made when there is none). Also makes `dataDir` itself. */
export function loadSecret(config: { dataDir: string; secret: string | null }): string {
  mkdirSync(config.dataDir, { recursive: true, mode: 0o700 });
  if (config.secret !== null) return config.secret;
  const file = join(config.dataDir, 'secret');
  try {
    // `wx` fails where the file exists: of two processes that start at once, one makes the secret, both read it.
    writeFileSync(file, `${randomBytes(32).toString('base64url')}\n`, {
      flag: 'wx',
      mode: 0o600,
      flush: true,
    });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  return readFileSync(file, 'utf8').trim();
}
