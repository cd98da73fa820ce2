/** The webhook formats by their names. */
import type { WebhookFormatName } from '#mail/webhooks/subscribed-types.ts';
import { mailgun } from './mailgun-format.ts';
import { postmark } from './postmark-format.ts';
import { raw } from './raw-format.ts';
import { resend } from './resend-format.ts';
import { sendgrid } from './sendgrid-format.ts';
import { standard } from './standard-format.ts';
import type { WebhookFormat } from './webhook-format.ts';

const formats: Record<WebhookFormatName, WebhookFormat> = {
  standard,
  resend,
  postmark,
  sendgrid,
  mailgun,
  raw,
};

export function formatOf(name: WebhookFormatName): WebhookFormat {
  return formats[name];
}
