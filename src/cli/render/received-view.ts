/** Received mail for a person; for --json the record without its bytes. */
import type { ReceivedMail, ReceivedSummary } from '#mail/received/received-mail.ts';
import { iso } from '#platform/base/clock.ts';
import type { Cell } from './cells.ts';
import type { Rows } from './table.ts';

export function receivedDocument({ at, ...mail }: ReceivedMail) {
  return { ...mail, at: iso(at) };
}

export function verdictsText({ verdicts: { spf, dkim, dmarc } }: ReceivedSummary): string {
  const signature = dkim.find(({ result }) => result === 'pass') ?? dkim[0];
  return `spf=${spf.result} dkim=${signature?.result ?? 'none'} dmarc=${dmarc.result}`;
}

export function receivedRows(mails: ReceivedMail[]): Rows {
  return {
    head: ['ID', 'CAME', 'TO', 'FROM', 'VERDICTS', 'SUBJECT'],
    rows: mails.map((mail) => [
      { id: mail.id },
      { time: mail.at, past: true },
      mail.recipients[0] ?? null,
      mail.fromHeader || mail.sender || '<>',
      verdictsText(mail.summary),
      mail.subject,
    ]),
    empty: 'There is no such mail; `postern received why ADDRESS` says what becomes of mail for an address.',
    cut: 'last',
  };
}

export function receivedFields(mail: ReceivedMail): Record<string, Cell> {
  const { summary } = mail;
  const files = summary.attachments.map(
    ({ position, filename, type, size }) =>
      `${position}: ${filename ?? '(no name)'} (${type}, ${size} bytes)`,
  );
  return {
    id: mail.id,
    came: { time: mail.at, past: true },
    to: mail.recipients.join(', '),
    'envelope sender': mail.sender || '<>',
    from: mail.fromHeader,
    subject: mail.subject,
    ...(mail.messageId !== null && { 'Message-ID': mail.messageId }),
    ...(mail.inReplyTo !== null && { 'answers email': mail.inReplyTo }),
    verdicts: verdictsText(summary),
    ...(summary.spam && { spam: `${summary.spam.isSpam ? 'yes' : 'no'}, score ${summary.spam.score}` }),
    'from host': `${mail.helo} ${mail.peer}`,
    TLS: summary.tls ? `${summary.tls.protocol} ${summary.tls.cipher}` : 'none',
    route: mail.routeId,
    ...(mail.webhookId !== null && { webhook: mail.webhookId }),
    size: mail.size,
    ...(files.length > 0 && { attachments: files.join(', ') }),
    text: summary.preview,
  };
}
