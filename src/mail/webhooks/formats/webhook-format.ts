/**
 * The parts of a webhook format: our own (standard-format.ts), or that of another service, so that an application which moved
 * here keeps the code that receives its webhooks. A format only writes an event differently: types, order, retries and
 * replays are the same.
 */
import type { EventRecord } from '#mail/record/rows/read-events.ts';
import type { WriteReceived } from '#mail/webhooks/received/received-post.ts';

export interface WebhookFormat {
  newSecret(): FormatSecret;
  /** A post can carry the signatures of an old and a new secret. */
  hasSeveralSignatures: boolean;
  /** The type of the bodies that `write` makes. */
  contentType: string;
  /** Built again for each attempt, because events do not change. `webhook.test` is written as a sample. */
  write(event: EventRecord, signing: Signing): string;
  /** The headers that prove where a post comes from; `id`: that of the event. */
  headersOf(id: string, body: string | Buffer, signing: Signing): Record<string, string>;
  /** The body of `email.received`, whose mail is read for it. */
  writeReceived: WriteReceived;
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
