/**
 * Parses delivery status notifications (RFC 3464; RFC 6533 for internationalized addresses). Missing or misspelled fields
 * are tolerated if their meaning is clear.
 */

import { failure, hostIn, maxFailures, oneOf, withCauseIn } from '#mail/returned/classify-bounce.ts';
import type { ParseResult } from '#mail/returned/parse-result.ts';
import { readDiagnostic } from '#platform/values/diagnostic.ts';
import type { ParsedMail } from './parsed-mail.ts';
import { type FieldBlock, fieldOf, readBlocks, typedFieldOf } from './report-fields.ts';
import { beforeCopy, saysExpanded, wordsIn } from './text-bounce.ts';

const partTypes = /^message\/(?:global-)?delivery-status$/;

/** Null if the mail is not such a report. */
export function readStatusReport(mail: ParsedMail): ParseResult | null {
  // RFC 3464 section 2 allows one such part. If a bounce was itself bounced, the first part counts.
  const part = mail.parts.find(({ type }) => partTypes.test(type));
  const blocks = part ? readBlocks(decodedFields(part.text)) : blocksInText(mail.text);
  return readStatusBlocks(blocks, mail, part ? 'status-report' : 'status-report-in-text');
}

/** Gateways that add an empty line leave the part's own header to be the first block, or to stand below the fields of it. */
function decodedFields(text: string): string {
  const [header] = readBlocks(text);
  const encoding = header && fieldOf(header, 'content-transfer-encoding')?.toLowerCase();
  const [, first, fields] = /^(\s*\S[\s\S]{0,1000}?\n)[ \t]{0,10}\n([\s\S]*)/.exec(text) ?? [];
  if (fields === undefined) return text;
  if (encoding === 'base64' && /^[\w+/=\s]*$/.test(fields))
    return `${first}\n${Buffer.from(fields, 'base64').toString().replace(/\r\n/g, '\n')}`;
  if (encoding !== 'quoted-printable') return text;
  return `${first}\n${fields
    .replace(/=\n/g, '')
    .replace(/=([\dA-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))}`;
}

/** Some servers write the fields into the text for people, or give the part the type text/plain. */
function blocksInText(text: string): FieldBlock[] {
  // A forwarded report is quoted.
  const found =
    /^(?<quote>[> ]{0,6})(?:Reporting-MTA|Original-Recipient|Final-Recipient|Action) ?: ?\S/im.exec(text);
  if (!found) return [];
  const fields = text.slice(found.index);
  return readBlocks(found.groups!.quote ? fields.replace(/^[> ]{1,6}/gm, '') : fields);
}

function readStatusBlocks(blocks: FieldBlock[], mail: ParsedMail, format: string): ParseResult | null {
  const recipients = blocks.filter((block) => actionOf(block) !== null);
  if (recipients.length === 0) return null;
  // Mail to one address may have been passed on to several (an alias, a list): mail/returned/failed-recipient.ts chooses.
  const failures = recipients
    .filter((block) => actionOf(block) === 'failed')
    .slice(0, maxFailures)
    .map((block) => readingOf('failed', block, { blocks, mail, format }))
    .filter((reading) => reading.kind === 'failed');
  if (failures.length > 0) return oneOf(failures);
  for (const action of ['delayed', 'arrived'] as const) {
    const block = recipients.find((one) => actionOf(one) === action);
    if (block) return readingOf(action, block, { blocks, mail, format });
  }
  return null;
}

type Action = 'failed' | 'delayed' | 'arrived';

const actions: [RegExp, Action][] = [
  [/^delay/i, 'delayed'],
  [/^(?:deliver(?!y|able)|relay|expand)/i, 'arrived'],
  [/^(?:fail|undeliver|reject|expired|bounce)|\(failed\)/i, 'failed'],
];

/** Null if the block does not describe a recipient. */
function actionOf(block: FieldBlock): Action | null {
  const said = fieldOf(block, 'action');
  if (said !== null) return actions.find(([pattern]) => pattern.test(said))?.[1] ?? byStatus(block);
  return block.has('final-recipient') || block.has('original-recipient') ? byStatus(block) : null;
}

function byStatus(block: FieldBlock): Action | null {
  switch (statusOf(block)?.[0] ?? replyClassOf(block)) {
    case '5':
      return 'failed';
    case '4':
      return 'delayed';
    case '2':
      return 'arrived';
    default:
      return null;
  }
}

/** Some servers add text after the code: "5.1.1 (bad destination mailbox address)". */
function statusOf(block: FieldBlock): string | null {
  return /^[245]\.\d{1,3}\.\d{1,3}/.exec(fieldOf(block, 'status') ?? '')?.[0] ?? null;
}

/** The first digit of the reply, for reports with neither action nor status. */
function replyClassOf(block: FieldBlock): string | undefined {
  return /^([245])\d\d\b/.exec(typedFieldOf(block, 'diagnostic-code') ?? '')?.[1];
}

interface Around {
  blocks: FieldBlock[];
  mail: ParsedMail;
  format: string;
}

function readingOf(action: Action, block: FieldBlock, { blocks, mail, format }: Around): ParseResult {
  if (action === 'arrived') return { kind: 'arrived', format };
  const reportedBy =
    typedFieldOf(block, 'remote-mta') ??
    blocks.map((one) => typedFieldOf(one, 'reporting-mta')).find((one) => one !== null) ??
    null;
  const supplement = supplementIn(block);
  const code =
    block
      .get('diagnostic-code')?.[0]
      ?.replace(/^[\w.-]{1,40} ?;\s?/, '')
      .trim() || supplement;
  const context = mail.text.slice(0, 8 * 1024);
  const isPermanent = action === 'failed';
  const words = code || (isPermanent && wordsIn(mail)) || quotedIn(context);
  const diagnostic = readDiagnostic(words, { status: statusOf(block), context, isPermanent });
  if (action === 'delayed')
    return { kind: 'delayed', format, words: diagnostic.words, reportedBy: reportedBy && hostIn(reportedBy) };
  const recipient = typedFieldOf(block, 'final-recipient');
  const isExpanded =
    saysExpanded(mail.text) || blocks.some((one) => isExpansion(one, { withoutName: recipient === null }));
  const found = failure({ format, recipient, reportedBy, diagnostic, isExpanded });
  return diagnostic.reply.code >= 500 ? withCauseIn(`${supplement}\n${beforeCopy(context)}`, found) : found;
}

/** The reply in a field of the server's own, such as Exchange's `X-Supplementary-Info: <mx.example.org #5.0.0 smtp; 550 …>`. */
function supplementIn(block: FieldBlock): string {
  const own = [...block].filter(([name]) =>
    /^x-|^(?:reason|error|response|smtp-(?:reply|response))$/.test(name),
  );
  const values = own.flatMap(([, values]) => values);
  const reply =
    values.find((value) => /(?:^|[\s;:#("'])[45](?:\d\d|\.\d{1,3}\.\d{1,3})[ -]/.test(value)) ?? '';
  return reply.startsWith('<') ? reply.replace(/>$/, '') : reply;
}

/** RFC 3464 section 2.3.3; a failure that names nobody is not that of a recipient who has the mail, either. */
function isExpansion(block: FieldBlock, { withoutName }: { withoutName: boolean }): boolean {
  return /^expand/i.test(fieldOf(block, 'action') ?? '') || (withoutName && actionOf(block) === 'arrived');
}

/** If the field is missing, the text for people often quotes the reply. */
function quotedIn(text: string): string {
  return /^[ \t>]*(?:\S.{0,200}[ \t])?[45]\d\d[ -][45]\.\d{1,3}\.\d{1,3}\b.*$/m.exec(text)?.[0] ?? '';
}
