/**
 * The certificate of the listeners: the operator's files, checked every ten seconds and reloaded when they have changed; or
 * a self-signed one, kept in the data directory so that it stays the same. If a changed file cannot be read, the old
 * certificate stays in use and the error is logged; at start, the self-signed one serves until the files can be read
 * (`postern status` says so).
 */
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createSecureContext, type SecureContext } from 'node:tls';
import type { Clock } from '#platform/base/clock.ts';
import { selfSigned } from './self-signed.ts';

/** PEM. */
export interface Pair {
  cert: string;
  key: string;
}

export interface Certificate {
  /** The certificate for clients that name no host, or one without a certificate of its own. */
  current(): Pair;
  /** The context for clients that name this host; null if the host does not have its own certificate. */
  contextOf(host: string): Promise<SecureContext | null>;
  /** Returns a function that removes the listener. */
  onChange(listener: (pair: Pair) => void): () => void;
  stop(): void;
}

export interface CertificateParts {
  /** Null: self-signed. */
  certFile: string | null;
  /** Null: the key is in the certificate file. */
  keyFile: string | null;
  dataDir: string;
  hostname: string;
  clock: Clock;
  onError(what: string, error: unknown): void;
}

const checkIntervalMs = 10_000;

/** Appended to the marks of files that could not be read. */
const bad = ' bad';

const none = async () => null;

export function openCertificate(parts: CertificateParts): Certificate {
  const { certFile, clock } = parts;
  const own = () => ownPair(parts.dataDir, parts.hostname, clock.now());
  if (certFile === null) return fixed(own());
  const keyFile = parts.keyFile ?? certFile;
  const listeners = new Set<(pair: Pair) => void>();
  let seen = marks(certFile, keyFile);
  let pair: Pair;
  try {
    pair = read(certFile, keyFile);
  } catch (error) {
    parts.onError('the TLS certificate cannot be read; a self-signed one is used until it can', error);
    seen += bad;
    pair = own();
  }

  function check(): void {
    cancel = clock.after(checkIntervalMs, check);
    const now = marks(certFile!, keyFile);
    if (now === seen) return;
    try {
      pair = read(certFile!, keyFile);
      for (const listener of listeners) listener(pair);
      seen = now;
    } catch (error) {
      // Perhaps the other file is still being written: check again, and log this once.
      if (seen !== now + bad)
        parts.onError('the new TLS certificate cannot be read; the old one stays in use', error);
      seen = now + bad;
    }
  }

  let cancel = clock.after(checkIntervalMs, check);
  return {
    current: () => pair,
    contextOf: none,
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    stop: () => cancel(),
  };
}

function fixed(pair: Pair): Certificate {
  return { current: () => pair, contextOf: none, onChange: () => () => {}, stop() {} };
}

/** Changes when a file changes, or when a symbolic link points to a different file. */
function marks(...files: string[]): string {
  return files
    .map((file) => {
      const found = statSync(file, { throwIfNoEntry: false });
      return found ? `${found.ino} ${found.size} ${found.mtimeMs}` : 'none';
    })
    .join(', ');
}

function read(certFile: string, keyFile: string): Pair {
  try {
    const pair = { cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') };
    createSecureContext(pair);
    return pair;
  } catch (error) {
    const { message } = error as Error;
    const problem =
      certFile === keyFile
        ? `${certFile} does not contain a certificate and its key in PEM`
        : `${certFile} and ${keyFile} are not a certificate and its key in PEM`;
    throw new Error(`${problem}: ${message}; correct POSTERN_TLS_CERT and POSTERN_TLS_KEY`);
  }
}

/** Reused while it is valid and the host name has not changed. */
function ownPair(dataDir: string, hostname: string, now: number): Pair {
  const file = join(dataDir, 'tls.json');
  try {
    const kept = JSON.parse(readFileSync(file, 'utf8')) as Pair & { hostname: string; until: number };
    const { cert, key } = kept;
    createSecureContext({ cert, key });
    if (kept.hostname === hostname && kept.until > now) return { cert, key };
  } catch {
    // The file does not exist yet, or is damaged: create a new certificate.
  }
  const made = selfSigned(hostname, now);
  writeFileSync(file, JSON.stringify({ ...made, hostname }), { mode: 0o600, flush: true });
  return { cert: made.cert, key: made.key };
}
