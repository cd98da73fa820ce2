/** The stored message of an email, for its page, its preview and the download. It may have been deleted after its retention. */

import { type OrgVisit, type PageParts, sendBody } from '#front/dashboard/page.ts';
import { notFound } from '#front/dashboard/page-error.ts';
import { CallSlots } from '#front/http/server-busy.ts';
import { findMessage } from '#mail/queue/rows/lease-statements.ts';
import type { DeliveryRecord, EmailRecord } from '#mail/record/rows/emails.ts';

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

/**
 * The HTML for a sandboxed frame of an opaque origin: no scripts, no forms, no navigation, and nothing loaded from other
 * sites unless the reader asks for remote images.
 */
export function preview(visit: OrgVisit, parts: PageParts, email: EmailRecord) {
  return withMessage(visit, parts, email, async (raw) => {
    const html = raw && (await parts.reading.html(visit.org.id, raw));
    if (html === null) throw notFound('preview');
    const pictures = visit.query.get('images') === '1' ? 'data: https: http:' : 'data:';
    // The sandbox opens no windows, so links that target one do nothing.
    return sendBody(
      `<!doctype html><meta name="referrer" content="no-referrer"><base target="_blank">${html}`,
      'text/html; charset=utf-8',
      {
        'Content-Security-Policy': `${policy}; img-src ${pictures}`,
        'X-Frame-Options': 'SAMEORIGIN',
        'Referrer-Policy': 'no-referrer',
        // A name in a link would be looked up, which tells the sender that the mail is being read.
        'X-DNS-Prefetch-Control': 'off',
      },
    );
  });
}

const policy = [
  "default-src 'none'",
  "style-src 'unsafe-inline'",
  "form-action 'none'",
  "base-uri 'none'",
  "frame-ancestors 'self'",
  'sandbox',
].join('; ');

/** The exact bytes that were sent. */
export function source(visit: OrgVisit, parts: PageParts, email: EmailRecord) {
  return withMessage(visit, parts, email, (raw) => {
    if (!raw) throw notFound('message');
    return sendBody(raw, 'message/rfc822', {
      'Content-Disposition': `attachment; filename="${email.id}.eml"`,
      'Content-Security-Policy': "default-src 'none'; sandbox",
    });
  });
}

/** Types that a browser shows without running anything. All others are saved. */
const shownTypes = /^(image\/(png|jpeg|gif|webp)|application\/pdf|text\/plain)$/;

/** An attached file, opened in the browser if that is safe. */
export function attachment(visit: OrgVisit, parts: PageParts, email: EmailRecord) {
  const { at } = visit.context.params as { at: string };
  return withMessage(visit, parts, email, async (raw) => {
    const files = raw && (await parts.reading.files(visit.org.id, raw, at));
    const file = files?.find(({ id }) => id === at);
    if (!file?.content) throw notFound('attachment');
    const isShown = shownTypes.test(file.type);
    visit.context.attachment(file.filename ?? 'attachment', { type: isShown ? 'inline' : 'attachment' });
    return sendBody(file.content, isShown ? file.type : 'application/octet-stream', {
      'Content-Security-Policy': "default-src 'none'; sandbox",
    });
  });
}
