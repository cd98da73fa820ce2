/**
 * SendGrid's event webhook: https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/event. An array of one event,
 * signed with ECDSA over the timestamp and the body; the public key verifies it.
 */

import { createPrivateKey, createSign, generateKeyPairSync } from 'node:crypto';
import { sendgridReceived } from '#mail/webhooks/received/sendgrid-received.ts';
import type { WrittenType } from '#mail/webhooks/subscribed-types.ts';
import { streamNumber } from '#platform/values/stream.ts';
import { boundedJson } from './bounded-json.ts';
import { type EmailEvent, emailEventOf, replyText, suppressedFor } from './email-event.ts';
import type { WebhookFormat } from './webhook-format.ts';

const writers: Record<string, (email: EmailEvent) => object> = {
  'email.queued': () => ({ event: 'processed' }),
  'email.deferred': (email) => ({
    event: 'deferred',
    response: replyText(email),
    attempt: String(email.attempt),
    ip: email.host?.address,
  }),
  'email.delivered': (email) => ({
    event: 'delivered',
    response: replyText(email),
    ip: email.host?.address,
    tls: email.hasTls ? 1 : 0,
  }),
  'email.bounced': (email) => ({ event: 'bounce', ...failure(email, bounceType(email)) }),
  'email.expired': (email) => ({ event: 'bounce', ...failure(email, 'blocked') }),
  'email.suppressed': (email) => ({ event: 'dropped', reason: droppedFor[suppressedFor(email)] }),
  'email.canceled': (email) => ({ event: 'dropped', reason: email.diagnostic }),
  'email.opened': (email) => ({ event: 'open', useragent: email.userAgent, ip: email.ip }),
  'email.clicked': (email) => ({
    event: 'click',
    useragent: email.userAgent,
    ip: email.ip,
    url: email.url,
    url_offset: { index: 0, type: 'html' },
  }),
  'email.complained': () => ({ event: 'spamreport' }),
  'email.unsubscribed': (email) => ({ event: 'group_unsubscribe', asm_group_id: streamNumber(email.stream) }),
} satisfies Record<Exclude<WrittenType<'sendgrid'>, 'email.received'>, (email: EmailEvent) => object>;

export const sendgrid: WebhookFormat = {
  hasSeveralSignatures: false,
  newSecret() {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    return {
      secret: privateKey.export({ type: 'pkcs8', format: 'der' }).toString('base64'),
      publicKey: publicKey.export({ type: 'spki', format: 'der' }).toString('base64'),
    };
  },
  contentType: 'application/json',
  write(event) {
    const email = emailEventOf(event);
    // The tags come first, so that none of them replaces a member.
    return boundedJson([{ ...email.tags, ...common(email), ...writers[email.type]!(email) }]);
  },
  /** Posts of Inbound Parse are signed in the same way. */
  headersOf(_id, body, { secrets: [secret], timestamp }) {
    const key = createPrivateKey({ key: Buffer.from(secret!, 'base64'), type: 'pkcs8', format: 'der' });
    const signature = createSign('sha256').update(String(timestamp)).update(body).sign(key, 'base64');
    return {
      'x-twilio-email-event-webhook-timestamp': String(timestamp),
      'x-twilio-email-event-webhook-signature': signature,
    };
  },
  writeReceived: sendgridReceived,
};

const droppedFor = {
  bounce: 'Bounced Address',
  complaint: 'Spam Reporting Address',
  manual: 'Unsubscribed Address',
};

function common(email: EmailEvent) {
  return {
    email: email.recipient,
    timestamp: Math.floor(email.at / 1000),
    'smtp-id': `<${email.messageId}>`,
    sg_event_id: email.id,
    sg_message_id: email.emailId,
    ...(email.tag !== null && { category: email.tag.split(',') }),
  };
}

/** "bounce" is permanent; "blocked" means that another mail may pass. */
function bounceType({ bounce }: EmailEvent): 'bounce' | 'blocked' {
  return bounce?.type === 'hard' ? 'bounce' : 'blocked';
}

/** Receivers read `status` without checking that it exists. */
function failure(email: EmailEvent, type: 'bounce' | 'blocked') {
  const status = email.response?.enhanced ?? (type === 'bounce' ? '5.0.0' : '4.0.0');
  // A domain that does not exist, and not one that gave no answer.
  const isNoDomain = email.category === 'dns' && type === 'bounce';
  const category = isNoDomain ? 'unknown_user' : (email.category ?? '');
  const bounce_classification = classifications[category] ?? 'Unclassified';
  return { type, reason: replyText(email), status, bounce_classification, tls: email.hasTls ? 1 : 0 };
}

const classifications: Record<string, string> = {
  unknown_user: 'Invalid Address',
  mailbox_disabled: 'Mailbox Unavailable',
  mailbox_full: 'Mailbox Unavailable',
  spam: 'Content',
  content: 'Content',
  size: 'Content',
  blocked: 'Reputation',
  policy: 'Reputation',
  auth: 'Reputation',
  rate_limit: 'Frequency or Volume Too High',
  dns: 'Technical Failure',
  network: 'Technical Failure',
  tls: 'Technical Failure',
  protocol: 'Technical Failure',
  loop: 'Technical Failure',
  unavailable: 'Technical Failure',
};
