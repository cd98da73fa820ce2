/**
 * The service's secrets: set by the operator, or made at the first start and kept in the data directory, one a line,
 * readable by its owner only. The first seals and signs; the others, which were first before it or will be after it,
 * still open and verify. Each use gets a key of its own, derived from a secret (HKDF, RFC 5869), so that no two uses share
 * one.
 *
 * The file is looked at again while the service runs: a secret that is put first there holds within half a second, in
 * every thread, and at once where something comes that none of the known ones opens.
 *
 * Losing them makes the DKIM keys in the database unreadable: they belong in the backup.
 */
import { hkdfSync, randomBytes } from 'node:crypto';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createAtomic, makeDirectory, writeAtomic } from './atomic-file.ts';

export type Purpose =
  | 'seal'
  | 'return-path'
  | 'message-id'
  | 'tracking'
  | 'event-cursor'
  | 'dashboard'
  | 'fingerprint';

type SecretList = readonly [string, ...string[]];

export interface Secrets {
  /** The same list for as long as nothing has changed. */
  all(): SecretList;
  /** Looks at once whether something has. */
  refresh(): void;
}

/** Where they come from. */
export interface SecretSource {
  dataDir: string;
  secret: string | null;
  secretOthers: readonly string[];
}

/** 32 bytes for one purpose. */
export function deriveKey(secret: string, purpose: Purpose): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, 'postern', purpose, 32));
}

/** What a secret is told by, which tells nothing of it. */
export function fingerprint(secret: string): string {
  return deriveKey(secret, 'fingerprint').toString('hex').slice(0, 8);
}

export function newSecret(): string {
  return randomBytes(32).toString('base64url');
}

/** The keys of one use, a key for each secret. */
export interface DerivedKeys<Key> {
  /** What seals and signs. */
  current(): Key;
  /** The first answer that `use` gives of a key; null: none of them does. */
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

/** Secrets that do not change. */
export function fixedSecrets(...list: [string, ...string[]]): Secrets {
  return { all: () => list, refresh() {} };
}

export function secretFile(dataDir: string): string {
  return join(dataDir, 'secret');
}

/** The configured secrets, or those kept in `dataDir` (one is made when there is none). Also makes `dataDir` itself. */
export function loadSecrets(from: SecretSource): Secrets {
  makeDirectory(from.dataDir);
  const file = secretFile(from.dataDir);
  if (from.secret === null && !existsSync(file)) createAtomic(file, `${newSecret()}\n`);
  return openSecrets(from);
}

/** The same, and makes nothing: throws where there is none. */
export function openSecrets({ dataDir, secret, secretOthers }: SecretSource): Secrets {
  return secret === null ? watched(secretFile(dataDir), secretOthers) : fixedSecrets(secret, ...secretOthers);
}

/** How long a change of the file may go unseen. */
const maxStaleMs = 500;

function watched(file: string, others: readonly string[]): Secrets {
  let stamp = stampOf(file);
  let known: SecretList = [...readSecrets(file), ...others];
  let checkedAt = performance.now();

  function refresh(): void {
    checkedAt = performance.now();
    const now = stampOf(file);
    // One that is gone or cannot be read is no reason to fail now: what is known goes on.
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

/** Those of a file, the current one first. */
export function readSecrets(file: string): [string, ...string[]] {
  const [current, ...others] = readFileSync(file, 'utf8')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  if (current === undefined) throw new Error(`${file} is empty; put the secret back that it held`);
  return [current, ...others];
}

export function writeSecrets(file: string, secrets: SecretList): void {
  writeAtomic(file, [...new Set(secrets)].map((secret) => `${secret}\n`).join(''));
}
