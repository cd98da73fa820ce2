/**
 * Checks a submitted message and reads its sender, subject and Message-ID. It must be well-formed, with one From, and
 * without duplicates of fields that may occur once (RFC 5322 section 3.6): mail programs interpret other messages in
 * different ways, and many hosts refuse them. Its size is bounded by what EHLO announces, and by nothing else.
 */
import { decodeWords } from 'postal-mime';
import { isExecutable } from '#front/api/send/attachments.ts';
import { fieldValue, type Head, maxFields, maxHeadLength } from '#mail/compose/head.ts';
import { longLines } from '#mail/compose/long-lines.ts';
import { type MimeTreePart, partsOf, readTree } from '#mail/compose/mime-tree.ts';
import { mailboxCure } from '#platform/values/address.ts';
import { hasHidden, withoutHidden } from '#platform/values/hidden-characters.ts';
import { readAddressList } from '#platform/values/mailbox-list.ts';
import type { NamedAddress } from '#platform/values/recipients.ts';
import { Refusal } from '#platform/values/refusal.ts';
import { addressesIn } from './address-fields.ts';
import { senderOf } from './from-field.ts';

interface SubmittedContent {
  /** `Name <address>`, or the address. */
  from: string;
  replyTo: NamedAddress[] | undefined;
  subject: string;
  /** Without angle brackets; null if there is none. */
  messageId: string | null;
  /** Lines that mail/compose/seven-bit.ts makes shorter. */
  hasLongLines: boolean;
}

const single = [
  ...['from', 'sender', 'reply-to', 'to', 'cc', 'subject', 'date', 'message-id', 'mime-version'],
  // RFC 2045 section 3: some readers take the first and some the last, so a filter may read another message than people do.
  ...['content-type', 'content-transfer-encoding'],
];

/** RFC 5321 section 6.3: more indicate a loop. */
const maxHops = 50;
/** The record's, not the message's: programs write whole error texts into a subject. */
const longestSubject = 998;

/** The content of a message whose header was repaired (repairs.ts). */
export function readContent(raw: Buffer, head: Head): SubmittedContent {
  requireWellFormed(raw, head);
  const tree = requireHarmless(raw);
  const long = longLines(raw, tree);
  if (long === 'fixed') bad(tooLong);
  const fromField = fieldValue(head, 'from') ?? '';
  const from = senderOf(fromField);
  if (from === null) {
    bad(`from: the message must have one From field with one address${mailboxCure(fromField)}`);
  }
  const replyField = fieldValue(head, 'reply-to');
  const replyTo = addressesIn(replyField);
  const hidden = readAddressList(replyField ?? '')?.mailboxes.find(({ address }) => hasHidden(address));
  if (hidden) bad(`reply-to: must have email addresses${withoutHidden(hidden.address)}`);
  return {
    from,
    replyTo: replyTo.length > 0 ? replyTo : undefined,
    subject: subjectOf(head),
    messageId: fieldValue(head, 'message-id')?.slice(1, -1) ?? null,
    hasLongLines: long === 'repairable',
  };
}

function bad(message: string): never {
  throw new Refusal('BAD_REQUEST', message);
}

function invalid(message: string): never {
  throw new Refusal('VALIDATION_ERROR', message);
}

function requireWellFormed(raw: Buffer, { fields, stray, isTooLarge }: Head): void {
  if (raw.includes(0)) bad('the message contains a NUL byte');
  if (stray !== null) bad(`${JSON.stringify(stray)} is not a header field`);
  if (isTooLarge) {
    bad(`the header is too large; it may have ${maxHeadLength / 1024} KiB and ${maxFields} fields`);
  }
  const count = (name: string) => fields.filter((field) => field.name === name).length;
  const twice = single.find((name) => count(name) > 1);
  if (twice) bad(`${twice}: the field occurs more than once`);
  if (count('received') > maxHops) bad('mail loop: the message has too many Received fields');
}

const tooLong =
  'the message has a line longer than 998 bytes in its header, or in a signed, encrypted or encoded part that must not be changed';

function requireHarmless(raw: Buffer): MimeTreePart {
  const tree = readTree(raw);
  if (!tree)
    bad('the message has too many parts, too deeply nested parts, or a part with too large a header');
  for (const part of partsOf(tree)) {
    const name = part.filename ?? '';
    if (isExecutable(name, part.type)) invalid(`attachments: ${name || part.type} is an executable file`);
  }
  return tree;
}

function subjectOf(head: Head): string {
  const subject = decodeWords(fieldValue(head, 'subject') ?? '')
    .replace(/[\r\n\0]+/g, ' ')
    .slice(0, longestSubject);
  return subject.toWellFormed();
}
