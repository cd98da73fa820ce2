/**
 * The canonical body of mailauth, with types for what we use of it. Its front door takes the key as PEM and parses it
 * for every mail, streams the message, and signs in the thread that calls it; and its header tools bring thirty
 * megabytes of modules with them, into every thread.
 */
import { createRequire } from 'node:module';

interface BodyHash {
  update(chunk: Buffer): void;
  digest(encoding: 'base64'): string;
}

export const { dkimBody }: { dkimBody(canonicalization: 'relaxed', algorithm: 'sha256'): BodyHash } =
  createRequire(import.meta.url)('mailauth/lib/dkim/body');
