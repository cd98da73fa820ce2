/** Examples of emails and their events, which a test compares with those of a real server. */
import type { Examples } from '../openapi/openapi-types.ts';
import { emailId, messageId, plainSend } from '../send/send-examples.ts';

const mx = { host: 'mx1.example.org', address: '203.0.113.25', port: 25 };
const tls = {
  protocol: 'TLSv1.3',
  cipher: 'TLS_AES_256_GCM_SHA384',
  verified: true,
  policy: 'opportunistic',
};
const none = { count: 0, firstAt: null, lastAt: null };
const queuedAt = '2026-03-02T08:15:30.120Z';

function email({ credits, ...fields }: { credits: number; status: string; from: string; to: string[] }) {
  return {
    success: true,
    emailId,
    id: messageId,
    ...fields,
    replyTo: null,
    subject: 'Your receipt',
    tags: {},
    tracking: { openTracking: false, clickTracking: false },
    credits,
    createdAt: queuedAt,
  };
}

const event = (last: string, type: string, recipient: string, timestamp: string, data: object) => ({
  id: `0198c9a4-6f1e-7d52-b3a4-5f0c8b1d9e${last}`,
  type,
  timestamp,
  recipient,
  data: { tags: {}, ...data },
});

const deliveredAt = '2026-03-02T08:15:30.940Z';
const bouncedAt = '2026-03-02T08:15:31.310Z';
const deferredAt = '2026-03-02T08:15:30.870Z';
const nextAttemptAt = '2026-03-02T08:16:00.870Z';

const taken = { code: 250, enhanced: '2.0.0', text: 'OK: queued as 4bX9Vq1Zc2z' };
const unknown = { code: 550, enhanced: '5.1.1', text: 'no such mailbox' };
const later = { code: 451, enhanced: '4.7.1', text: 'greylisted, try again' };

const bounce = {
  type: 'hard',
  category: 'unknown_user',
  fault: 'recipient',
  diagnostic: '550 5.1.1 no such mailbox',
};

function recipient(address: string, status: string, lastResponse: object, fields: object) {
  return {
    address,
    status,
    attempts: 1,
    nextAttemptAt: null,
    deliveredAt: null,
    lastResponse,
    mx,
    tls,
    opens: none,
    clicks: none,
    bounce: null,
    ...fields,
  };
}

const partlyDelivered = {
  ...email({
    status: 'partially_delivered',
    from: plainSend.from,
    to: ['ann@example.org', 'bob@example.org'],
    credits: 2,
  }),
  updatedAt: bouncedAt,
  recipients: [
    recipient('ann@example.org', 'delivered', taken, { deliveredAt }),
    recipient('bob@example.org', 'bounced', unknown, { bounce }),
  ],
  events: [
    event('28', 'email.queued', 'ann@example.org', queuedAt, {}),
    event('29', 'email.queued', 'bob@example.org', queuedAt, {}),
    event('2a', 'email.delivered', 'ann@example.org', deliveredAt, { attempt: 1, response: taken, mx, tls }),
    event('2b', 'email.bounced', 'bob@example.org', bouncedAt, {
      attempt: 1,
      response: unknown,
      mx,
      tls,
      bounce,
    }),
  ],
};

const deferred = {
  ...email({ status: 'deferred', from: plainSend.from, to: ['greta@example.org'], credits: 1 }),
  updatedAt: deferredAt,
  recipients: [recipient('greta@example.org', 'deferred', later, { nextAttemptAt })],
  events: [
    event('28', 'email.queued', 'greta@example.org', queuedAt, {}),
    event('29', 'email.deferred', 'greta@example.org', deferredAt, {
      attempt: 1,
      response: later,
      mx,
      tls,
      category: 'greylisting',
      fault: 'infrastructure',
      diagnostic: '451 4.7.1 greylisted, try again',
      origin: 'remote',
      possibleDuplicate: false,
      nextAttemptAt,
    }),
  ],
};

export const emailExamples: Examples = {
  partlyDelivered: {
    summary: 'To two recipients: one mail server accepted it, the other rejected an unknown mailbox',
    value: partlyDelivered,
  },
  deferred: {
    summary: 'Deferred by greylisting; the next attempt follows in half a minute',
    value: deferred,
  },
};

/** In a list, an event names its email. */
export const listedEvents = partlyDelivered.events.map((listed) => ({
  ...listed,
  data: {
    emailId,
    id: messageId,
    recipient: listed.recipient,
    from: plainSend.from,
    subject: plainSend.subject,
    ...listed.data,
  },
}));

export const foundEmail = {
  emailId,
  id: messageId,
  status: partlyDelivered.status,
  from: plainSend.from,
  to: partlyDelivered.to,
  subject: plainSend.subject,
  tags: {},
  createdAt: queuedAt,
  updatedAt: bouncedAt,
  recipients: partlyDelivered.recipients.map(({ address, status }) => ({ address, status })),
};
