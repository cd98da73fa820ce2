/** Examples of sends and their responses, which a test runs against a real server. */
import type { Examples } from '../openapi/openapi-types.ts';

export const emailId = '0198c9a4-6f1e-7d52-b3a4-5f0c8b1d9e27';
export const messageId = 'AZjJpG8efVKzpF8Mix2eJ48dLDtKWWh3@mail.example.com';

export const plainSend = {
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
  ...plainSend,
  to: ['ann@example.org', 'dora@example.org', 'emil@example.org'],
  subject: 'Our office is closed on Friday',
};

const response = (accepted: string[]) => ({ success: true, id: messageId, emailId, accepted });

/** A response has the name of its request. */
export const sendExamples = {
  requests: {
    plain: { summary: 'Plain text to one recipient', value: plainSend },
    everything: { summary: 'Every field', value: everything },
    partial: {
      summary: 'To three recipients: one is suppressed, and there are credits for one',
      value: partial,
    },
  },
  responses: {
    plain: { summary: 'Accepted', value: response(['ann@example.org']) },
    everything: { summary: 'Accepted for both', value: response(['ann@example.org', 'carl@example.org']) },
    partial: {
      summary: 'Accepted for one of three',
      value: {
        ...response(['ann@example.org']),
        suppressed: ['dora@example.org'],
        insufficientCredit: ['emil@example.org'],
      },
    },
  },
} satisfies Record<string, Examples>;
