/**
 * What a send asks of compose/, as plain data: it crosses from thread to thread by structured clone. The bytes of
 * attachments and messages are not cloned but handed over.
 */

import type { Fields } from './mime.ts';
import type { RawMessage } from './raw-message.ts';
import type { Composed } from './recipient-copies.ts';

export interface ComposeOrder {
  /** Whose it is: organizations take turns. */
  orgId: string;
  /** What the message is made of, or the message itself. */
  fields: Fields | RawMessage;
  tracking: {
    opens: boolean;
    clicks: boolean;
    /** What the links begin with. */
    base: string;
    /** The deliveries that the links tell of, one for each recipient, in their order. */
    deliveryIds: string[];
  };
  /** `second`: signs as well. */
  signer: { domain: string; second?: ComposeKey } & ComposeKey;
}

export interface ComposeKey {
  selector: string;
  /** The private key as it is kept; it is opened where it is used. */
  sealedKey: string;
}

/** For all recipients. As much work as this keeps a thread busy for milliseconds. */
const largeCost = 256 * 1024;

/** About how many octets there are to compose, encode and hash. */
export function costOf({ fields, tracking, signer }: ComposeOrder): number {
  const length =
    'raw' in fields
      ? fields.raw.length
      : fields.attachments.reduce(
          (sum, { content }) => sum + content.length,
          (fields.html?.length ?? 0) + (fields.text?.length ?? 0),
        );
  const isTracked = tracking.opens || tracking.clicks;
  const signatures = signer.second ? 2 : 1;
  return (length + signatureCost * signatures) * (isTracked ? tracking.deliveryIds.length : 1);
}

/** A signature takes as long as so many octets. */
const signatureCost = 16 * 1024;

export const isLarge = (order: ComposeOrder) => costOf(order) > largeCost;

export type Compose = (order: ComposeOrder) => Promise<Composed>;

/** What crosses: the value, and the memory that goes with it and is the sender's no longer. */
export interface Transfer<Value> {
  value: Value;
  transferList: ArrayBuffer[];
}

export function packOrder(order: ComposeOrder): Transfer<ComposeOrder> {
  const { fields } = order;
  if ('raw' in fields) {
    const raw = ownMemory(fields.raw);
    return { value: { ...order, fields: { ...fields, raw } }, transferList: memoryOf([raw]) };
  }
  const attachments = fields.attachments.map((one) => ({ ...one, content: ownMemory(one.content) }));
  const value = { ...order, fields: { ...fields, attachments } };
  return { value, transferList: memoryOf(attachments.map(({ content }) => content)) };
}

export function packComposed(composed: Composed): Transfer<Composed> {
  const [messages, base] = [composed.messages.map(ownMemory), composed.base && ownMemory(composed.base)];
  return {
    value: { ...composed, messages, base },
    transferList: memoryOf(base ? [...messages, base] : messages),
  };
}

/** A Buffer arrives as a plain Uint8Array. */
export function unpackOrder(order: ComposeOrder): ComposeOrder {
  const { fields } = order;
  if ('raw' in fields) return { ...order, fields: { ...fields, raw: asBuffer(fields.raw) } };
  const attachments = fields.attachments.map((one) => ({ ...one, content: asBuffer(one.content) }));
  return { ...order, fields: { ...fields, attachments } };
}

export function unpackComposed(composed: Composed): Composed {
  const { messages, base } = composed;
  return { ...composed, messages: messages.map(asBuffer), base: base && asBuffer(base) };
}

/** Small Buffers lie together in one piece of memory, which would be cloned or lost whole: they move out. */
function ownMemory(bytes: Buffer): Buffer {
  if (bytes.length === bytes.buffer.byteLength) return bytes;
  const own = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(own);
  return own;
}

/** Each once: the same file may be attached twice. */
function memoryOf(list: Buffer[]): ArrayBuffer[] {
  return [...new Set(list.map(({ buffer }) => buffer as ArrayBuffer))];
}

function asBuffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}
