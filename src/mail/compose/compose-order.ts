/**
 * An order to compose the messages of a send, as plain data that is sent to a thread by structured clone. The bytes of
 * attachments and messages are transferred, not cloned.
 */
import { bufferOf } from '#platform/base/guarded-thread.ts';
import type { Fields } from './mime.ts';
import type { RawMessage } from './raw-message.ts';
import type { Composed } from './recipient-copies.ts';

export interface ComposeOrder {
  /** Organizations take turns. */
  orgId: string;
  /** The fields of the message, or the whole message. */
  fields: Fields | RawMessage;
  tracking: {
    opens: boolean;
    clicks: boolean;
    /** The beginning of every link. */
    base: string;
    /** The deliveries that the links identify, one for each recipient, in order. */
    deliveryIds: string[];
  };
  /** Set for mail of a stream that people subscribe to: each copy gets a link of its own (RFC 8058). */
  subscription?: OrderedSubscription | null;
  /** With `second`, the message gets a second signature. */
  signer: { domain: string; second?: ComposeKey } & ComposeKey;
}

interface OrderedSubscription {
  stream: string;
  isTest: boolean;
  /** In the order of the deliveries. */
  addresses: string[];
  /** At which mail is taken in that unsubscribes; null: none is. */
  mailDomain: string | null;
}

export interface ComposeKey {
  selector: string;
  /** The private key as it is stored; only the composing thread opens it. */
  sealedKey: string;
}

/** An order with more work than this, for all recipients, keeps a thread busy for milliseconds. */
const largeCost = 256 * 1024;

/** The approximate number of bytes to compose, encode and hash. */
export function costOf({ fields, tracking, subscription, signer }: ComposeOrder): number {
  const length =
    'raw' in fields
      ? fields.raw.length
      : fields.attachments.reduce(
          (sum, { content }) => sum + content.length,
          (fields.html?.length ?? 0) +
            (fields.text?.length ?? 0) +
            (fields.amp?.length ?? 0) +
            (fields.to.length + (fields.cc?.length ?? 0)) * addressCost,
        );
  const signatures = signer.second ? 2 : 1;
  return (length + signatureCost * signatures) * (copiesOf({ tracking, subscription }) || 1);
}

/** The number of copies, one for each recipient; 0 if all get the same message. */
export function copiesOf({
  tracking,
  subscription,
}: Pick<ComposeOrder, 'tracking' | 'subscription'>): number {
  return tracking.opens || tracking.clicks || subscription ? tracking.deliveryIds.length : 0;
}

/** A signature takes as long as this many bytes, an address in a field as these. */
const signatureCost = 16 * 1024;
const addressCost = 64;

export const isLarge = (order: ComposeOrder) => costOf(order) > largeCost;

export type Compose = (order: ComposeOrder) => Promise<Composed>;

/** A value for another thread, and the memory that is transferred with it, which the sender can no longer use. */
export interface Transfer<Value> {
  value: Value;
  transferList: ArrayBuffer[];
}

export function packOrder(order: ComposeOrder): Transfer<ComposeOrder> {
  const { fields } = order;
  if (!hasBytes(fields)) return { value: order, transferList: [] };
  if ('raw' in fields) {
    const raw = ownMemory(fields.raw);
    return { value: { ...order, fields: { ...fields, raw } }, transferList: memoryOf([raw]) };
  }
  const attachments = fields.attachments.map((one) => ({ ...one, content: ownMemory(one.content) }));
  const value = { ...order, fields: { ...fields, attachments } };
  return { value, transferList: memoryOf(attachments.map(({ content }) => content)) };
}

/** Most orders have only texts. */
const hasBytes = (fields: ComposeOrder['fields']) => 'raw' in fields || fields.attachments.length > 0;

export function packComposed(composed: Composed): Transfer<Composed> {
  const [messages, base] = [composed.messages.map(ownMemory), composed.base && ownMemory(composed.base)];
  const packed = ownMemory(composed.packed);
  return {
    value: { ...composed, messages, base, packed },
    transferList: memoryOf([...messages, ...(base ? [base] : []), packed]),
  };
}

export function unpackOrder(order: ComposeOrder): ComposeOrder {
  const { fields } = order;
  if (!hasBytes(fields)) return order;
  if ('raw' in fields) return { ...order, fields: { ...fields, raw: bufferOf(fields.raw) } };
  const attachments = fields.attachments.map((one) => ({ ...one, content: bufferOf(one.content) }));
  return { ...order, fields: { ...fields, attachments } };
}

export function unpackComposed(composed: Composed): Composed {
  const { messages, base, packed } = composed;
  return {
    ...composed,
    messages: messages.map(bufferOf),
    base: base && bufferOf(base),
    packed: bufferOf(packed),
  };
}

/** Small Buffers share one ArrayBuffer, which would be cloned or transferred whole: they are copied to memory of their own. */
function ownMemory(bytes: Buffer): Buffer {
  if (bytes.length === bytes.buffer.byteLength) return bytes;
  const own = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(own);
  return own;
}

/** Without duplicates: the same file may be attached twice. */
function memoryOf(list: Buffer[]): ArrayBuffer[] {
  return [...new Set(list.map(({ buffer }) => buffer as ArrayBuffer))];
}
