/** The delivery of a recipient that was just accepted, as the runner gets it from memory instead of from the database. */
import { patched } from '#platform/base/byte-patch.ts';
import { type Delivery, maxPreloadedBytes } from '#platform/values/glossary.ts';
import type { Send, SendRecipient } from './send-record.ts';

export function acceptedDelivery(
  send: Send,
  { deliveryId, address, domain, message }: SendRecipient,
): Delivery {
  const { id, bytes } = send.messages[message]!;
  return {
    id: deliveryId,
    emailId: send.emailId,
    orgId: send.orgId,
    messageId: id,
    recipient: address,
    domain,
    from: send.from,
    tags: send.tags,
    stream: send.stream ?? null,
    attempts: 0,
    createdAt: send.acceptedAt,
    dueAt: send.acceptedAt,
    expiresAt: send.expiresAt,
    hasDeadline: send.hasDeadline,
    tls: send.tls,
    ...inMemoryMessage(bytes, send.base),
  };
}

/** A large message is assembled only when its delivery starts. */
function inMemoryMessage(raw: Buffer, base: Buffer | null): Pick<Delivery, 'message'> {
  if (base === null) return { message: raw };
  return base.length <= maxPreloadedBytes ? { message: patched(base, raw) } : {};
}
