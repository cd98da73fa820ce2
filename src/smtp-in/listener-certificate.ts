/**
 * The certificate that listeners show: the operator's files, looked at again every few seconds and taken up when
 * they have changed; or one of our own making, kept in the data directory so that it stays the same. A file that
 * has become unreadable leaves the certificate as it was, and the operator is told.
 */
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import type { Clock } from '../base/clock.ts';
import { selfSigned } from './self-signed.ts';

/** PEM. */
interface Pair {
  cert: string;
  key: string;
}

export interface Certificate {
  current(): Pair;
  /** Returns how to hear no more of it. */
  onChange(listener: (pair: Pair) => void): () => void;
  stop(): void;
}

export class CertificateError extends Error {}

export interface CertificateParts {
  /** Null: one of our own. */
  certFile: string | null;
  /** Null: the key is in the certificate's file. */
  keyFile: string | null;
  dataDir: string;
  hostname: string;
  clock: Clock;
  onError(what: string, error: unknown): void;
}

const lookIntervalMs = 10_000;

export function openCertificate(parts: CertificateParts): Certificate {
  const { certFile, clock } = parts;
  if (certFile === null) return fixed(ownPair(parts.dataDir, parts.hostname, clock.now()));
  const keyFile = parts.keyFile ?? certFile;
  const listeners = new Set<(pair: Pair) => void>();
  let seen = marks(certFile, keyFile);
  let pair = read(certFile, keyFile);

  function look(): void {
    cancel = clock.after(lookIntervalMs, look);
    const now = marks(certFile!, keyFile);
    if (now === seen) return;
    try {
      pair = read(certFile!, keyFile);
      for (const listener of listeners) listener(pair);
      seen = now;
    } catch (error) {
      // Perhaps the other file is being written still: looked at again, and told once.
      if (seen !== `${now} bad`) parts.onError('the TLS certificate stays the old one', error);
      seen = `${now} bad`;
    }
  }

  let cancel = clock.after(lookIntervalMs, look);
  return {
    current: () => pair,
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    stop: () => cancel(),
  };
}

function fixed(pair: Pair): Certificate {
  return { current: () => pair, onChange: () => () => {}, stop() {} };
}

/** What changes when a file does; a link that leads elsewhere counts too. */
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
    const where = certFile === keyFile ? certFile : `${certFile} and ${keyFile}`;
    const what = `${where} are no certificate and its key in PEM: ${(error as Error).message}`;
    throw new CertificateError(`${what}; mend POSTERN_TLS_CERT and POSTERN_TLS_KEY`);
  }
}

/** Kept for as long as it is valid and for the name that it was made for. */
function ownPair(dataDir: string, hostname: string, now: number): Pair {
  const file = join(dataDir, 'tls.json');
  try {
    const kept = JSON.parse(readFileSync(file, 'utf8')) as Pair & { hostname: string; until: number };
    if (kept.hostname === hostname && kept.until > now) return { cert: kept.cert, key: kept.key };
  } catch {
    // There is none yet.
  }
  const made = selfSigned(hostname, now);
  writeFileSync(file, JSON.stringify({ ...made, hostname }), { mode: 0o600, flush: true });
  return { cert: made.cert, key: made.key };
}
