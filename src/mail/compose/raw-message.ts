/**
 * Prepares a message that the caller gave whole (by SMTP submission): adds Received, and Date, Message-ID, MIME-Version and
 * To if they are missing (RFC 5321 section 6.4), tracking if it is on, and the signature. Text beyond ASCII is encoded
 * (seven-bit.ts). Every other byte stays as it was.
 */

import {
  linkLimitIfExceeded,
  type MessageTracking,
  newAllowance,
  type Tracker,
} from '#mail/compose/tracking/html-tracking.ts';
import { isSubscribed, unsubscribeFields } from '#mail/compose/tracking/list-unsubscribe.ts';
import { trackedParts } from '#mail/compose/tracking/raw-message-tracking.ts';
import { field } from './field.ts';
import { composed, fieldValue, type Head, readHead } from './head.ts';
import { copiesFor, type Unpacked } from './recipient-copies.ts';
import { toSevenBit } from './seven-bit.ts';
import { type DkimSigner, signatures } from './sign.ts';

export interface RawMessage {
  /** With CRLF line ends only, and well-formed fields. */
  raw: Buffer;
  /** Without angle brackets; the message's own if it has one. */
  messageId: string;
  date: number;
  /**
   * Says by which host, how and under which id the message was received. Not from which client: its name and address would tell
   * every recipient where the application runs. RFC 5321 section 4.4 wants them, for tracing; the id serves that here.
   */
  received?: string;
  /** Feedback-ID, unless the message has one. */
  feedbackId?: string;
}

export function composeRaw(message: RawMessage, tracking: MessageTracking, signer: DkimSigner): Unpacked {
  const raw = toSevenBit(withRequiredFields(message));
  const allowance = newAllowance();
  const tracked = trackedParts(raw, tracking, allowance);
  const names = () => readHead(raw).fields.map(({ name }) => name);
  const isPersonal = isSubscribed(tracking.trackers, names);
  const own = isPersonal ? names() : [];
  const copyFor = (tracker: Tracker) => {
    const copy = tracked ? tracked(tracker) : raw;
    return signed(isPersonal ? withUnsubscribe(copy, tracker, own) : copy, signer, message.date);
  };
  const copies =
    tracked || isPersonal
      ? copiesFor(tracking.trackers, copyFor)
      : { messages: [signed(raw, signer, message.date)], base: null };
  return { messageId: message.messageId, ...copies, trackedLinks: linkLimitIfExceeded(allowance) };
}

function withUnsubscribe(raw: Buffer, tracker: Tracker, names: readonly string[]): Buffer {
  const fields = unsubscribeFields(tracker, names).map(({ text }) => `${text}\r\n`);
  return Buffer.concat([Buffer.from(fields.join('')), raw]);
}

/** Fields are read as Latin-1, which keeps every byte: they may be in any character set. */
function signed(raw: Buffer, signer: DkimSigner, at: number): Buffer {
  const { fields, bodyStart } = readHead(raw, 0, raw.length, composed);
  const written = fields.map(({ label, start, end }) => {
    return { name: label, text: raw.toString('latin1', start, end - 2) };
  });
  const signatureFields = signatures(
    { fields: written, body: raw.subarray(bodyStart) },
    signer,
    at,
    'latin1',
  );
  return Buffer.concat([Buffer.from(signatureFields.map(({ text }) => `${text}\r\n`).join('')), raw]);
}

function withRequiredFields({ raw, messageId, date, received, feedbackId }: RawMessage): Buffer {
  const head = readHead(raw);
  const now = new Date(date).toUTCString().replace('GMT', '+0000');
  const missing = [
    ...(received ? [`${field('Received', `${received}; ${now}`).text}\r\n`] : []),
    ...(feedbackId ? fieldIfMissing(head, 'Feedback-ID', feedbackId) : []),
    ...fieldIfMissing(head, 'Date', now),
    ...fieldIfMissing(head, 'Message-ID', `<${messageId}>`),
    ...fieldIfMissing(head, 'MIME-Version', '1.0'),
    // The recipients of the envelope may be hidden ones, so they are not named (RFC 5322 section 3.4).
    ...(fieldValue(head, 'cc') === null ? fieldIfMissing(head, 'To', 'undisclosed-recipients:;') : []),
  ];
  // A message may end with its header, without the empty line that every reader looks for.
  const end = head.bodyStart === head.end ? '\r\n' : '';
  if (missing.length === 0 && end === '') return raw;
  return Buffer.concat([Buffer.from(missing.join('')), raw, Buffer.from(end)]);
}

function fieldIfMissing(head: Head, name: string, value: string): string[] {
  return fieldValue(head, name.toLowerCase()) === null ? [`${name}: ${value}\r\n`] : [];
}
