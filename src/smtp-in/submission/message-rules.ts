/**
 * Checks a submitted message and reads its sender, subject and Message-ID. It must be well-formed, with one From, and
 * without duplicates of fields that may occur once (RFC 5322 section 3.6): mail programs interpret other messages in
 * different ways, and many hosts refuse them. Its size is bounded by what EHLO announces, and by nothing else.
 */
import { decodeWords } from 'postal-mime';
import { isExecutable } from '../../api/send/attachments.ts';
import { fieldValue, type Head, maxFields, maxHeadLength, readHead } from '../../compose/head.ts';
import { partsOf, readTree } from '../../compose/mime-tree.ts';
import type { NamedAddress } from '../../mail/recipients.ts';
import { Refusal } from '../../mail/refusal.ts';
import { addressesIn } from './address-fields.ts';
import { senderOf } from './from-field.ts';

export interface SubmittedContent {
  head: Head;
  /** `Name <address>`, or the address. */
  from: string;
  replyTo: NamedAddress[] | undefined;
  subject: string;
  /** Without angle brackets; null if there is none. */
  messageId: string | null;
}

const single = ['from', 'sender', 'reply-to', 'to', 'cc', 'subject', 'date', 'message-id', 'mime-version'];

/** RFC 5321 section 6.3: more indicate a loop. */
const maxHops = 50;
const longestSubject = 998;

export function readContent(raw: Buffer): SubmittedContent {
  const head = readHead(raw);
  requireWellFormed(raw, head);
  requireHarmless(raw);
  const from = senderOf(fieldValue(head, 'from') ?? '');
  if (from === null) {
    bad('from: the message must have one From field with one address');
  }
  const replyTo = addressesIn(fieldValue(head, 'reply-to'));
  return {
    head,
    from,
    replyTo: replyTo.length > 0 ? replyTo : undefined,
    subject: subjectOf(head),
    messageId: messageIdOf(head),
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

function requireHarmless(raw: Buffer): void {
  const tree = readTree(raw);
  if (!tree)
    bad('the message has too many parts, too deeply nested parts, or a part with too large a header');
  for (const part of partsOf(tree)) {
    const name = part.filename ?? '';
    if (isExecutable(name, part.type)) invalid(`attachments: ${name || part.type} is an executable file`);
  }
}

function subjectOf(head: Head): string {
  const subject = decodeWords(fieldValue(head, 'subject') ?? '')
    .replace(/[\r\n\0]+/g, ' ')
    .toWellFormed();
  if (subject.length > longestSubject) invalid(`subject: at most ${longestSubject} characters`);
  return subject;
}

function messageIdOf(head: Head): string | null {
  const value = fieldValue(head, 'message-id');
  if (value === null) return null;
  const id = /^<([\x21-\x3b\x3d\x3f-\x7e]{1,900})>$/.exec(value)?.[1];
  return id ?? bad('message-id: it must be one <id@domain>');
}
