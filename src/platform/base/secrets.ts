/**
 * The service's secrets: set by the operator, or generated at the first start and kept in the data directory, one a line,
 * readable by the owner only. The first secret seals and signs. The others, earlier or future first ones, only open and
 * verify. Each purpose has its own key, derived from the secret (HKDF, RFC 5869).
 *
 * The file is checked again while the service runs: a secret that is put first there takes effect within half a second in
 * every thread, and at once if something arrives that no known secret opens.
 *
 * If the secrets are lost, the DKIM keys in the database cannot be read: they belong in the backup.
 */
import { hkdfSync, randomBytes } from 'node:crypto';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createAtomic, makeDirectory, writeAtomic } from './atomic-file.ts';

export type Purpose =
  | 'seal'
  | 'return-path'
  | 'unsubscribe'
  | 'message-id'
  | 'tracking'
  | 'event-cursor'
  | 'file-link'
  | 'dashboard'
  | 'fingerprint';

type SecretList = readonly [string, ...string[]];

export interface Secrets {
  /** The same array object until the secrets change. */
  all(): SecretList;
  /** Checks for changes now. */
  refresh(): void;
}

export interface SecretSource {
  dataDir: string;
  secret: string | null;
  secretOthers: readonly string[];
}

export function deriveKey(secret: string, purpose: Purpose): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, 'postern', purpose, 32));
}

/** A short name for a secret that reveals nothing about it. */
export function fingerprint(secret: string): string {
  return deriveKey(secret, 'fingerprint').toString('hex').slice(0, 8);
}

export function newSecret(): string {
  return randomBytes(32).toString('base64url');
}

/** The keys for one purpose, one for each secret. */
export interface DerivedKeys<Key> {
  /** The key that seals and signs. */
  current(): Key;
  /** The first result of `use` that is not null; null if no key gives one. */
  find<Answer>(use: (key: Key) => Answer | null): Answer | null;
}

export function keysOf<Key>(secrets: Secrets, make: (secret: string) => Key): DerivedKeys<Key> {
  let known: SecretList | undefined;
  let keys: Key[] = [];
  const all = () => {
    const list = secrets.all();
    if (list !== known) keys = list.map(make);
    known = list;
    return keys;
  };
  const first = <Answer>(use: (key: Key) => Answer | null): Answer | null => {
    for (const key of all()) {
      const answer = use(key);
      if (answer !== null) return answer;
    }
    return null;
  };
  return {
    current: () => all()[0]!,
    find(use) {
      const found = first(use);
      if (found !== null) return found;
      const before = known;
      secrets.refresh();
      return secrets.all() === before ? null : first(use);
    },
  };
}

export function fixedSecrets(...list: [string, ...string[]]): Secrets {
  return { all: () => list, refresh() {} };
}

export function secretFile(dataDir: string): string {
  return join(dataDir, 'secret');
}

/** The configured secrets, or those in `dataDir`, where one is generated if there is none. Creates `dataDir` too. */
export function loadSecrets(from: SecretSource): Secrets {
  makeDirectory(from.dataDir);
  const file = secretFile(from.dataDir);
  if (from.secret === null && !existsSync(file)) createAtomic(file, `${newSecret()}\n`);
  return openSecrets(from);
}

/** The same, but creates nothing: throws if there is no secret. */
export function openSecrets({ dataDir, secret, secretOthers }: SecretSource): Secrets {
  return secret === null ? watched(secretFile(dataDir), secretOthers) : fixedSecrets(secret, ...secretOthers);
}

/** The longest time until a change of the file is noticed. */
const maxStaleMs = 500;

function watched(file: string, others: readonly string[]): Secrets {
  let stamp = stampOf(file);
  let known: SecretList = [...readSecrets(file), ...others];
  let checkedAt = performance.now();

  function refresh(): void {
    checkedAt = performance.now();
    const now = stampOf(file);
    // A file that is missing or cannot be read is no reason to fail now: the known secrets stay in use.
    if (now === null || now === stamp) return;
    try {
      known = [...readSecrets(file), ...others];
      stamp = now;
    } catch {}
  }

  return {
    all() {
      if (performance.now() - checkedAt >= maxStaleMs) refresh();
      return known;
    },
    refresh,
  };
}

function stampOf(file: string): string | null {
  try {
    const { ino, size, mtimeMs } = statSync(file);
    return `${ino} ${size} ${mtimeMs}`;
  } catch {
    return null;
  }
}

/** The secrets of a file, the current one first. */
export function readSecrets(file: string): [string, ...string[]] {
  const [current, ...others] = readFileSync(file, 'utf8')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  if (current === undefined)
    throw new Error(`${file} is empty; restore the secret that it held, from a backup`);
  return [current, ...others];
}

export function writeSecrets(file: string, secrets: SecretList): void {
  writeAtomic(file, [...new Set(secrets)].map((secret) => `${secret}\n`).join(''));
}
