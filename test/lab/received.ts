/** Records of received mail for tests. */
import type { ReceivedSummary } from '#mail/received/received-mail.ts';
import type { NewReceivedMail } from '#mail/received/rows/received-mails.ts';
import { newId } from '#platform/base/id.ts';

export const emptySummary: ReceivedSummary = {
  isReadable: true,
  preview: '',
  textLength: 0,
  htmlLength: 0,
  attachments: [],
  references: [],
  isAutomatic: false,
  verdicts: {
    spf: { result: 'none', domain: null },
    dkim: [],
    dmarc: { result: 'none', domain: null, policy: null },
    arc: { result: 'none' },
  },
  spam: null,
  tls: null,
};

export function receivedMail(given: Partial<NewReceivedMail> & { orgId: string }): NewReceivedMail {
  const raw = given.raw ?? Buffer.from('From: ann@there.invalid\r\nSubject: Hello\r\n\r\nHello\r\n');
  return {
    id: newId(),
    domain: 'x.invalid',
    routeId: newId(),
    action: 'webhook',
    webhookId: null,
    recipients: ['orders@x.invalid'],
    sender: 'ann@there.invalid',
    peer: '192.0.2.1',
    helo: 'there.invalid',
    messageId: 'one@there.invalid',
    subject: 'Hello',
    fromHeader: 'ann@there.invalid',
    inReplyTo: null,
    summary: emptySummary,
    size: raw.length,
    at: 1000,
    ...given,
    raw,
  };
}
