/** The stored message of an email, for its page, its preview and the download. It may have been deleted after its retention. */

import type { OrgVisit, PageParts } from '#front/dashboard/page.ts';
import { CallSlots } from '#front/http/server-busy.ts';
import { findMessage } from '#mail/queue/rows/lease-statements.ts';
import type { DeliveryRecord, EmailRecord } from '#mail/record/rows/emails.ts';
import { showAttachment, showPreview, showSource } from './show-message.ts';

/** Messages in memory at once for an organization's pages, until they have been sent; each may be many MiB. */
const slots = new CallSlots({ ofOne: 6 });

/** Calls `use` with the message of a delivery; null if the message was deleted or never stored. */
export async function withMessage<Result>(
  visit: OrgVisit,
  { db }: Pick<PageParts, 'db'>,
  email: EmailRecord,
  use: (raw: Buffer | null) => Result | Promise<Result>,
): Promise<Result> {
  const delivery = copyOf(email, visit.query.get('copy'));
  if (!delivery?.messageId) return use(null);
  const { messageId } = delivery;
  slots.takeUntilSent(visit.context, visit.org.id);
  return use(await findMessage(db, messageId));
}

/** With tracking, each delivery has a copy of its own. Without an id, the first. */
function copyOf({ deliveries }: EmailRecord, id: string | null): DeliveryRecord | undefined {
  const queued = deliveries.filter(({ messageId }) => messageId !== null);
  return id === null ? queued[0] : queued.find((each) => each.id === id);
}

export const preview = (visit: OrgVisit, parts: PageParts, email: EmailRecord) =>
  withMessage(visit, parts, email, (raw) => showPreview(visit, parts, raw));

export const source = (visit: OrgVisit, parts: PageParts, email: EmailRecord) =>
  withMessage(visit, parts, email, (raw) => showSource(raw, email.id));

export const attachment = (visit: OrgVisit, parts: PageParts, email: EmailRecord) =>
  withMessage(visit, parts, email, (raw) => showAttachment(visit, parts, raw));
