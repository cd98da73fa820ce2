/** An email for a person: its envelope, its recipients, and each attempt with its SMTP transcript. */

import { replyText } from '#mail/deliver/outcome.ts';
import type { AttemptRecord, DeliveryRecord, EmailRecord } from '#mail/record/rows/emails.ts';
import { addressesOf } from '#mail/record/telemetry.ts';
import { tlsWords } from '#mail/record/tls-words.ts';
import { iso } from '#platform/base/clock.ts';
import { span } from '#platform/base/span.ts';
import type { TranscriptLine } from '#platform/values/glossary.ts';
import { type Cell, coloured, dim, type OutputBlock, sanitize } from './output.ts';
import { local } from './times.ts';
import { wrap } from './width.ts';

export function emailFields(email: EmailRecord, status: string): OutputBlock {
  const tags = Object.entries(email.tags).map(([key, value]) => `${key}=${value}`);
  return {
    fields: {
      emailId: email.id,
      id: email.messageId,
      status: { state: status },
      from: email.from,
      subject: email.subject,
      ...otherLists(email),
      ...(email.replyTo !== null && { 'reply to': email.replyTo }),
      ...(tags.length > 0 && { tags: tags.join(' ') }),
      credits: email.credits,
      ...(email.dialect !== null && { dialect: email.dialect }),
      ...(email.scheduledAt !== null && { scheduled: { time: email.scheduledAt } }),
      created: { time: email.createdAt, past: true },
      updated: { time: email.updatedAt, past: true },
    },
  };
}

/** The recipients in Cc and Bcc; all others are in To. */
function otherLists(email: EmailRecord): Record<string, string> {
  const lists = (['cc', 'bcc'] as const).flatMap((kind) => {
    const addresses = addressesOf(email, kind);
    const more = addresses.length > maxListed ? ` and ${addresses.length - maxListed} more` : '';
    return addresses.length === 0 ? [] : [[kind, `${addresses.slice(0, maxListed).join(', ')}${more}`]];
  });
  return Object.fromEntries(lists);
}

const maxListed = 10;

export function recipientTable(email: EmailRecord, now: number): OutputBlock {
  return {
    head: ['RECIPIENT', 'STATUS', 'ATTEMPTS', 'NEXT', 'LAST REPLY'],
    rows: email.deliveries.map((delivery) => [
      delivery.recipient,
      { state: delivery.status },
      delivery.attempts,
      { time: delivery.nextAttemptAt, due: (delivery.nextAttemptAt ?? now) < now },
      delivery.lastReply && replyText(delivery.lastReply),
    ]),
    empty: '',
    cut: 'last',
    kind: 'recipient',
  };
}

export function attemptDocument(attempt: AttemptRecord) {
  const { outcome, category, fault, origin, diagnostic, possibleDuplicate, rule = null } = attempt.verdict;
  return {
    number: attempt.number,
    startedAt: iso(attempt.startedAt),
    endedAt: iso(attempt.endedAt),
    outcome,
    category,
    fault,
    origin,
    diagnostic,
    possibleDuplicate,
    rule,
    response: attempt.reply,
    mx: attempt.mx,
    tls: attempt.tls,
    transcript: attempt.transcript,
  };
}

const signs: Record<TranscriptLine['from'], string> = { client: '>', server: '<', note: '*' };

export function attemptLines(
  { recipient }: Pick<DeliveryRecord, 'recipient'>,
  attempt: AttemptRecord,
  columns: number,
): string[] {
  const { outcome, category, fault, diagnostic, possibleDuplicate, rule } = attempt.verdict;
  const { mx, tls } = attempt;
  const details = [
    `attempt ${attempt.number} for ${recipient}`,
    local(attempt.startedAt),
    span(attempt.endedAt - attempt.startedAt),
    mx ? `${mx.host} [${mx.address}]:${mx.port}` : 'no host',
    tls ? tlsWords(tls) : 'in clear',
    coloured(outcome),
    ...(category ? [`${category}, ${fault}`] : []),
    ...(rule ? [`rule ${rule}`] : []),
    ...(possibleDuplicate ? ['may have arrived'] : []),
  ];
  const isInTranscript = attempt.transcript.some(({ text }) => text.includes(diagnostic));
  return [
    ...wrap(details.join(dim(' | ')).split(' '), columns),
    ...attempt.transcript.flatMap((line) => transcriptLines(line, columns)),
    ...(isInTranscript || attempt.reply ? [] : [`          * ${sanitize(diagnostic)}`]),
  ];
}

const transcriptIndent = ' '.repeat('123456 ms > '.length);

function transcriptLines({ ms, from, text }: TranscriptLine, columns: number): string[] {
  const time = dim(`${ms} ms`.padStart(9));
  const style = from === 'note' ? dim : (line: string) => line;
  return textLines(text).map((line) => {
    const parts = wrap(line.split(' '), columns - transcriptIndent.length).map(style);
    return `${time} ${dim(signs[from])} ${parts.join(`\n${transcriptIndent}`)}`;
  });
}

export function attemptRows(
  { recipient }: Pick<DeliveryRecord, 'recipient'>,
  attempt: AttemptRecord,
): Cell[][] {
  const { number, startedAt, mx, transcript } = attempt;
  const { outcome, diagnostic, rule = null } = attempt.verdict;
  return [
    [
      'attempt',
      recipient,
      number,
      { time: startedAt, past: true },
      outcome,
      mx?.host ?? null,
      diagnostic,
      rule,
    ],
    ...transcript.flatMap(({ ms, from, text }) =>
      textLines(text).map((line) => ['transcript', recipient, number, ms, signs[from], line]),
    ),
  ];
}

/** A transcript line may hold a reply of several lines. */
function textLines(text: string): string[] {
  return text.trimEnd().split(/\r?\n/).map(sanitize);
}
