/**
 * A message that was given as it is (by submission), made ready for the wire: Date and Message-ID where it has none,
 * tracking where it is on, the signature. Everything else stays as it was, to the octet.
 */

import { fieldValue, type Head, readHead } from './head.ts';
import { limitOf, type MessageTracking, newAllowance } from './html-tracking.ts';
import { trackedParts } from './raw-message-tracking.ts';
import { type Composed, copiesFor } from './recipient-copies.ts';
import { type Signer, signatures } from './sign.ts';

export interface RawMessage {
  /** With CRLF line ends alone, and well-formed fields. */
  raw: Buffer;
  /** Without angle brackets; where the message has one, that. */
  messageId: string;
  date: number;
}

export function composeRaw(message: RawMessage, tracking: MessageTracking, signer: Signer): Composed {
  const raw = completed(message);
  const allowance = newAllowance();
  const tracked = trackedParts(raw, tracking, allowance);
  const copies = tracked
    ? copiesFor(tracking.trackers, (tracker) => signed(tracked(tracker), signer, message.date))
    : { messages: [signed(raw, signer, message.date)], base: null };
  return { messageId: message.messageId, ...copies, trackedLinks: limitOf(allowance) };
}

/** Octet for octet: a field may be in any character set. */
function signed(raw: Buffer, signer: Signer, at: number): Buffer {
  const { fields, bodyStart } = readHead(raw);
  const written = fields.map(({ label, start, end }) => {
    return { name: label, text: raw.toString('latin1', start, end - 2) };
  });
  const added = signatures({ fields: written, body: raw.subarray(bodyStart) }, signer, at, 'latin1');
  return Buffer.concat([Buffer.from(added.map(({ text }) => `${text}\r\n`).join('')), raw]);
}

function completed({ raw, messageId, date }: RawMessage): Buffer {
  const head = readHead(raw);
  const missing = [
    ...added(head, 'Date', new Date(date).toUTCString().replace('GMT', '+0000')),
    ...added(head, 'Message-ID', `<${messageId}>`),
  ];
  // A message may end with its header; the empty line is what all others look for.
  const end = head.bodyStart === head.end ? '\r\n' : '';
  if (missing.length === 0 && end === '') return raw;
  return Buffer.concat([Buffer.from(missing.join('')), raw, Buffer.from(end)]);
}

function added(head: Head, name: string, value: string): string[] {
  return fieldValue(head, name.toLowerCase()) === null ? [`${name}: ${value}\r\n`] : [];
}
