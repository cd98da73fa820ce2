/**
 * The parts of a webhook format: our own (standard-format.ts), or that of another service, so that an application which moved
 * here keeps the code that receives its webhooks. A format only writes an event differently: types, order, retries and
 * replays are the same.
 */
import type { EventRecord } from '#mail/record/rows/read-events.ts';

export interface WebhookFormat {
  newSecret(): FormatSecret;
  /** A post can carry the signatures of an old and a new secret. */
  hasSeveralSignatures: boolean;
  /** Built again for each attempt, because events do not change. `webhook.test` is written as a sample. */
  write(event: EventRecord, signing: Signing): SignedPost;
}

interface FormatSecret {
  /** The secret that verifies posts; or, with a public key, the one that signs them and nobody else sees. */
  secret: string;
  publicKey: string | null;
}

export interface Signing {
  /** Newest first. Only formats that can carry several signatures use the others. */
  secrets: readonly string[];
  /** Seconds since the epoch. */
  timestamp: number;
}

interface SignedPost {
  headers: Record<string, string>;
  body: string;
}
