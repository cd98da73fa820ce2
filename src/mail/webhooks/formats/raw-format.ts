/**
 * Received mail as it is, `message/rfc822`, which Rails' Action Mailbox takes at its relay ingress with the user name
 * `actionmailbox`. User name and password are those of the URL (Basic authentication, RFC 7617).
 */
import { rawReceived, rawType } from '#mail/webhooks/received/raw-received.ts';
import { basicAuthorization } from './postmark-format.ts';
import type { WebhookFormat } from './webhook-format.ts';

export const raw: WebhookFormat = {
  hasSeveralSignatures: false,
  newSecret: () => ({ secret: '', publicKey: null }),
  contentType: rawType,
  /** Only `webhook.test` is written: no other event but received mail has this format. */
  write: ({ id, at }) =>
    [
      'From: test@example.com',
      'To: test@example.com',
      'Subject: This is a test',
      `Date: ${new Date(at).toUTCString().replace('GMT', '+0000')}`,
      `Message-ID: <${id}@example.com>`,
      '',
      'This is a test.',
      '',
    ].join('\r\n'),
  headersOf: basicAuthorization,
  writeReceived: rawReceived,
};
