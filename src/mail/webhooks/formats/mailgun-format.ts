/**
 * Mailgun's webhooks: https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/webhook-payloads. The signature is in
 * the body: an HMAC of the timestamp and a random token. `mailgunEvent` is also an item of Mailgun's events API.
 */

import { createHmac, randomBytes } from 'node:crypto';
import { mailgunReceived } from '#mail/webhooks/received/mailgun-received.ts';
import type { WrittenType } from '#mail/webhooks/subscribed-types.ts';
import { domainOf } from '#platform/values/address.ts';
import { boundedJson } from './bounded-json.ts';
import { type EmailEvent, emailEventOf, suppressedFor } from './email-event.ts';
import type { Signing, WebhookFormat } from './webhook-format.ts';

const writers: Record<string, (email: EmailEvent) => object> = {
  'email.queued': () => ({ event: 'accepted', 'log-level': 'info' }),
  'email.delivered': (email) => ({ event: 'delivered', 'log-level': 'info', ...delivery(email) }),
  'email.deferred': (email) => ({
    event: 'failed',
    severity: 'temporary',
    reason: 'generic',
    'log-level': 'warn',
    ...delivery(email),
  }),
  'email.bounced': (email) => ({ ...failed('bounce'), ...delivery(email) }),
  'email.expired': (email) => ({ ...failed('old'), ...delivery(email) }),
  'email.canceled': (email) => ({ ...failed('generic'), ...delivery(email) }),
  'email.suppressed': suppressed,
  'email.opened': (email) => ({ event: 'opened', ...visitor(email) }),
  'email.clicked': (email) => ({ event: 'clicked', url: email.url, ...visitor(email) }),
  'email.complained': () => ({ event: 'complained', 'log-level': 'warn' }),
  'email.unsubscribed': (email) => ({ event: 'unsubscribed', ...visitor(email) }),
} satisfies Record<Exclude<WrittenType<'mailgun'>, 'email.received'>, (email: EmailEvent) => object>;

/** Mailgun's names of our events. */
export const mailgunTypes: Readonly<Record<string, string>> = {
  'email.queued': 'accepted',
  'email.delivered': 'delivered',
  'email.deferred': 'failed',
  'email.bounced': 'failed',
  'email.expired': 'failed',
  'email.canceled': 'failed',
  'email.suppressed': 'failed',
  'email.opened': 'opened',
  'email.clicked': 'clicked',
  'email.complained': 'complained',
  'email.unsubscribed': 'unsubscribed',
} satisfies Record<Exclude<WrittenType<'mailgun'>, 'email.received'>, string>;

export const mailgun: WebhookFormat = {
  hasSeveralSignatures: false,
  newSecret: () => ({ secret: randomBytes(32).toString('hex'), publicKey: null }),
  contentType: 'application/json',
  write(event, signing) {
    return boundedJson({
      signature: mailgunSignature(signing),
      'event-data': mailgunEvent(emailEventOf(event)),
    });
  },
  headersOf: () => ({}),
  writeReceived: mailgunReceived,
};

export function mailgunSignature({ secrets: [secret], timestamp }: Signing) {
  const token = randomBytes(25).toString('hex');
  const signature = createHmac('sha256', secret!).update(`${timestamp}${token}`).digest('hex');
  return { timestamp: String(timestamp), token, signature };
}

export function mailgunEvent(email: EmailEvent) {
  return {
    id: email.id,
    timestamp: email.at / 1000,
    recipient: email.recipient,
    'recipient-domain': domainOf(email.recipient),
    tags: email.tag === null ? [] : email.tag.split(','),
    'user-variables': email.tags,
    campaigns: [],
    flags: { 'is-routed': false, 'is-authenticated': true, 'is-system-test': false, 'is-test-mode': false },
    message: {
      headers: {
        to: email.recipient,
        'message-id': email.messageId,
        from: email.from,
        subject: email.subject,
      },
      attachments: [],
    },
    ...writers[email.type]!(email),
  };
}

function failed(reason: string) {
  return { event: 'failed', severity: 'permanent', reason, 'log-level': 'error' };
}

const suppressions = {
  bounce: ['suppress-bounce', 605],
  manual: ['suppress-unsubscribe', 606],
  complaint: ['suppress-complaint', 607],
} as const;

function suppressed(email: EmailEvent) {
  const [reason, code] = suppressions[suppressedFor(email)];
  return { ...failed(reason), ...delivery(email, code) };
}

function delivery({ response, diagnostic, attempt, host, hasTls }: EmailEvent, code = response?.code ?? 0) {
  return {
    'delivery-status': {
      code,
      'enhanced-code': response?.enhanced ?? '',
      message: response?.text ?? diagnostic,
      description: diagnostic,
      'attempt-no': attempt,
      'mx-host': host?.host ?? '',
      tls: hasTls,
    },
  };
}

/** Mailgun guesses the program and the place; we do not. */
function visitor({ ip, userAgent }: EmailEvent) {
  return { 'log-level': 'info', ip, 'client-info': { 'user-agent': userAgent, 'client-type': 'unknown' } };
}
