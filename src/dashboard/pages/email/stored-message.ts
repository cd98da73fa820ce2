/** The stored bytes of an email, for its page, its preview and whoever saves them. They may be gone: they are kept for a while. */
import { createSlotsPerOrganization } from '../../../api/server-busy.ts';
import type { DeliveryRecord, EmailRecord } from '../../../db/events/emails.ts';
import { readMessages } from '../../../db/queue/lease-statements.ts';
import { untracked } from '../../../tracking/untracked.ts';
import { type OrgVisit, type PageParts, sendBody } from '../../page.ts';
import { notFound } from '../../page-error.ts';
import { readHtml } from './email-content.ts';

/** A message may have many MiB: so many of an organization's are in memory for its pages. */
const places = createSlotsPerOrganization(6);

/** Reads the message of one of the deliveries and hands it on; null: it is not kept any more, or never was. */
export async function withMessage<Result>(
  { context, org, query }: OrgVisit,
  { db }: Pick<PageParts, 'db'>,
  email: EmailRecord,
  use: (raw: Buffer | null) => Result | Promise<Result>,
): Promise<Result> {
  const delivery = copyOf(email, query.get('copy'));
  if (!delivery?.messageId) return use(null);
  const leave = places.take(context, org.id);
  try {
    const [raw] = await readMessages(db, [delivery.messageId]);
    return await use(raw && raw.length > 0 ? raw : null);
  } finally {
    leave();
  }
}

/** Whose copy, where tracking made one for each; the first, where nobody says. */
function copyOf({ deliveries }: EmailRecord, id: string | null): DeliveryRecord | undefined {
  const queued = deliveries.filter(({ messageId }) => messageId !== null);
  return id === null ? queued[0] : queued.find((each) => each.id === id);
}

/**
 * The HTML in a frame that is another origin and may do nothing: no scripts, no forms, no way out, nothing loaded from
 * elsewhere unless somebody asks for pictures.
 */
export function preview(visit: OrgVisit, parts: PageParts, email: EmailRecord) {
  return withMessage(visit, parts, email, (raw) => {
    const html = raw && readHtml(raw, (text) => untracked(text, parts.links));
    if (html === null) throw notFound('preview');
    const pictures = visit.query.get('images') === '1' ? 'data: https: http:' : 'data:';
    // Where links open in other windows there are none: a sandbox opens no windows.
    return sendBody(
      `<!doctype html><meta name="referrer" content="no-referrer"><base target="_blank">${html}`,
      'text/html; charset=utf-8',
      {
        'Content-Security-Policy': `${policy}; img-src ${pictures}`,
        'X-Frame-Options': 'SAMEORIGIN',
        'Referrer-Policy': 'no-referrer',
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

/** Exactly what goes on the wire. */
export function source(visit: OrgVisit, parts: PageParts, email: EmailRecord) {
  return withMessage(visit, parts, email, (raw) => {
    if (!raw) throw notFound('message');
    return sendBody(raw, 'message/rfc822', {
      'Content-Disposition': `attachment; filename="${email.id}.eml"`,
      'Content-Security-Policy': "default-src 'none'; sandbox",
    });
  });
}
