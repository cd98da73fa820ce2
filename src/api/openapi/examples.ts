/** Examples of sends, their answers, and emails as they are told of. The tests run them against the real server. */
import type { Example } from './openapi-document.ts';

export const emailId = '0198c9a4-6f1e-7d52-b3a4-5f0c8b1d9e27';
const id = 'AZjJpG8efVKzpF8Mix2eJ48dLDtKWWh3@mail.example.com';

const plain = {
  from: 'Acme Billing <billing@example.com>',
  to: 'ann@example.org',
  subject: 'Your receipt',
  text: 'Thank you for your order. The total is 42.00 EUR.',
};

const everything = {
  from: 'Acme Billing <billing@example.com>',
  to: ['ann@example.org', 'carl@example.org'],
  subject: 'Your receipt for order 4711',
  html: '<p>Thank you for your order.</p><p><a href="https://shop.example.com/orders/4711">See it</a></p>',
  text: 'Thank you for your order. See it at https://shop.example.com/orders/4711',
  replyTo: 'support@example.com',
  attachments: [{ filename: 'receipt.txt', content: 'VG90YWw6IDQyLjAwIEVVUgo=', contentType: 'text/plain' }],
  headers: { 'X-Campaign': 'receipts' },
  tags: { order: '4711', kind: 'receipt' },
  tracking: { openTracking: true, clickTracking: false },
  idempotencyKey: 'receipt-4711',
};

const partial = {
  ...plain,
  to: ['ann@example.org', 'dora@example.org', 'emil@example.org'],
  subject: 'Our office is closed on Friday',
};

const answer = (accepted: string[]) => ({ success: true, id, emailId, accepted });

/** An answer has the name of the request that it answers. */
export const sendExamples = {
  requests: {
    plain: { summary: 'Plain text to one recipient', value: plain },
    everything: { summary: 'Every field', value: everything },
    partial: {
      summary: 'To three, of whom one is on the suppression list, with credits for one',
      value: partial,
    },
  },
  answers: {
    plain: { summary: 'Accepted', value: answer(['ann@example.org']) },
    everything: { summary: 'Accepted for both', value: answer(['ann@example.org', 'carl@example.org']) },
    partial: {
      summary: 'Accepted for one of three',
      value: {
        ...answer(['ann@example.org']),
        suppressed: ['dora@example.org'],
        insufficientCredit: ['emil@example.org'],
      },
    },
  },
} satisfies Record<string, Record<string, Example>>;

const mx = { host: 'mx1.example.org', address: '203.0.113.25', port: 25 };
const tls = {
  protocol: 'TLSv1.3',
  cipher: 'TLS_AES_256_GCM_SHA384',
  verified: true,
  policy: 'opportunistic',
};
const nobody = { count: 0, firstAt: null, lastAt: null };
const queuedAt = '2026-03-02T08:15:30.120Z';

function email({ credits, ...fields }: { credits: number; status: string; from: string; to: string[] }) {
  return {
    success: true,
    emailId,
    id,
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
    opens: nobody,
    clicks: nobody,
    bounce: null,
    ...fields,
  };
}

const partlyDelivered = {
  ...email({
    status: 'partially_delivered',
    from: plain.from,
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
  ...email({ status: 'deferred', from: plain.from, to: ['greta@example.org'], credits: 1 }),
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

export const emailExamples: Record<string, Example> = {
  partlyDelivered: {
    summary: 'To two: one mail server took it, the other knows no such mailbox',
    value: partlyDelivered,
  },
  deferred: { summary: 'Put off by a greylisting server, tried again in half a minute', value: deferred },
};

/** In a list an event says whose it is. */
export const listedEvents = partlyDelivered.events.map((each) => ({
  ...each,
  data: {
    ...{ emailId, id, recipient: each.recipient, from: plain.from, subject: plain.subject },
    ...each.data,
  },
}));

export const foundExample = {
  ...{ emailId, id, status: partlyDelivered.status, from: plain.from, to: partlyDelivered.to },
  ...{ subject: plain.subject, tags: {}, createdAt: queuedAt, updatedAt: bouncedAt },
  recipients: partlyDelivered.recipients.map(({ address, status }) => ({ address, status })),
};
