/** The events that an endpoint gets: those that its format can write, of the types that it asks for. */
import type { EventType } from '#platform/values/glossary.ts';

export const webhookFormats = ['standard', 'resend', 'postmark', 'sendgrid', 'mailgun', 'raw'] as const;

export type WebhookFormatName = (typeof webhookFormats)[number];

/** The fate of a mail, as most other services tell it. */
const mailTypes = [
  'email.queued',
  'email.delivered',
  'email.deferred',
  'email.bounced',
  'email.expired',
  'email.canceled',
  'email.suppressed',
  'email.opened',
  'email.clicked',
  'email.complained',
  'email.received',
] as const;

/** The types that another service has an event for (mail/webhooks/formats/). Our own format has one for each type. */
const writtenTypes = {
  resend: ['email.scheduled', ...mailTypes],
  postmark: [
    'email.delivered',
    'email.bounced',
    'email.expired',
    'email.complained',
    'email.opened',
    'email.clicked',
    'email.received',
    'suppression.added',
    'suppression.removed',
  ],
  sendgrid: [...mailTypes, 'email.unsubscribed'],
  mailgun: [...mailTypes, 'email.unsubscribed'],
  raw: ['email.received'],
} as const satisfies Record<Exclude<WebhookFormatName, 'standard'>, readonly EventType[]>;

export type WrittenType<Format extends keyof typeof writtenTypes> = (typeof writtenTypes)[Format][number];

export interface Subscription {
  /** No types means all. */
  types: readonly string[];
  format: WebhookFormatName;
}

/** Whether an endpoint gets an event. What its route says decides about a received mail; a route names an endpoint, or none. */
export function isFor(
  endpoint: Subscription & { id: string },
  { type, data }: { type: string; data: Record<string, unknown> },
): boolean {
  if (type !== 'email.received') return wants(endpoint, type);
  if (data.action !== 'webhook') return false;
  return data.webhookId == null ? wants(endpoint, type) : data.webhookId === endpoint.id;
}

/** Whether an endpoint gets events of a type. webhook.test is posted only to the endpoint under test. */
export function wants({ types, format }: Subscription, type: string): boolean {
  if (type === 'webhook.test') return false;
  const written: readonly string[] | null = format === 'standard' ? null : writtenTypes[format];
  return (written?.includes(type) ?? true) && (types.length === 0 || types.includes(type));
}
