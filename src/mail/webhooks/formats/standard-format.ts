/**
 * Our own format: `{type, timestamp, data}`, signed according to Standard Webhooks
 * (https://github.com/standard-webhooks/standard-webhooks).
 */
import { createHmac, randomBytes } from 'node:crypto';
import { outwardEvent } from '#mail/record/event.ts';
import { standardReceived } from '#mail/webhooks/received/standard-received.ts';
import { boundedJson } from './bounded-json.ts';
import type { Signing, WebhookFormat } from './webhook-format.ts';

const prefix = 'whsec_';

export const standard: WebhookFormat = {
  hasSeveralSignatures: true,
  newSecret: () => ({ secret: newStandardSecret(), publicKey: null }),
  contentType: 'application/json',
  write(event) {
    const { type, timestamp, data } = outwardEvent(event);
    const { emailId, id, recipient } = data;
    return boundedJson({ type, timestamp, data }, { type, timestamp, data: { emailId, id, recipient } });
  },
  headersOf: standardHeaders,
  writeReceived: standardReceived,
};

/** 256 bits; the specification requires 192 to 512. */
export function newStandardSecret(): string {
  return prefix + randomBytes(32).toString('base64');
}

/**
 * The signature twice: libraries that were made before the standard read it under `svix-` names. The id is the event's id: the
 * same on every attempt, and in the event feed.
 */
export function standardHeaders(
  id: string,
  body: string | Buffer,
  { secrets, timestamp }: Signing,
): Record<string, string> {
  const signature = sign(secrets, `${id}.${timestamp}.`, body);
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signature,
    'svix-id': id,
    'svix-timestamp': String(timestamp),
    'svix-signature': signature,
  };
}

/** One signature per secret, so that a receiver with the old secret can also verify. */
function sign(secrets: readonly string[], before: string, body: string | Buffer): string {
  const keys = secrets.map((secret) => Buffer.from(secret.slice(prefix.length), 'base64'));
  return keys
    .map((key) => createHmac('sha256', key).update(before).update(body))
    .map((hmac) => `v1,${hmac.digest('base64')}`)
    .join(' ');
}
