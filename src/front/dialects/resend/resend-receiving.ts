/** Resend's received emails, as an application reads them after the webhook `email.received`. */
import { z } from 'zod';
import { findOwnReceived, readRaw } from '#front/api/received/find-received-mail.ts';
import {
  type DialectCall,
  type DialectRoute,
  readParameters,
  requireById,
  requireItem,
} from '#front/dialects/dialect.ts';
import { linksTo } from '#mail/received/received-links.ts';
import type { ReceivedContent, ReceivedMail } from '#mail/received/received-mail.ts';
import { listReceived } from '#mail/received/rows/received-mails.ts';
import { mailboxesIn } from '#mail/webhooks/received/received-fields.ts';
import { resendAttachment, resendMembers } from '#mail/webhooks/received/resend-received.ts';
import { iso } from '#platform/base/clock.ts';
import { mailboxText } from '#platform/values/address.ts';
import { listOf, pageOf } from './resend-lists.ts';

const grant = 'received:read';

/** Before the routes of sent emails, whose ids `receiving` would be one of. */
export const resendReceivingRoutes: DialectRoute[] = [
  { route: 'GET /emails/receiving', grant, respond: list },
  { route: 'GET /emails/receiving/:id', grant, respond: getOne },
  { route: 'GET /emails/receiving/:id/attachments', grant, respond: listAttachments },
  { route: 'GET /emails/receiving/:id/attachments/:file', grant, respond: getAttachment },
];

/** Copies and answers are not in a list, because they are not read without the whole mail. */
async function list(call: DialectCall) {
  const { db, orgId, caller } = call;
  return pageOf(
    call,
    ({ limit, after, before }) =>
      listReceived(db, orgId, { before: after, after: before, limit, onlyTest: caller.isTest }),
    (mail) => fields(mail, null),
  );
}

function find({ db, orgId, caller, params }: DialectCall): Promise<ReceivedMail> {
  return requireById(params.id!, (id) => findOwnReceived(db, id, orgId, caller), 'received email');
}

function fields(mail: ReceivedMail, content: ReceivedContent | null) {
  const replyTo = content ? mailboxesIn(content, 'reply-to') : [];
  return {
    id: mail.id,
    ...resendMembers(mail, content),
    reply_to: replyTo.length > 0 ? replyTo.map(mailboxText) : null,
    attachments: mail.summary.attachments.map(resendAttachment),
  };
}

const query = z.object({ html_format: z.enum(['data_uri', 'cid']).default('data_uri') });

async function getOne(call: DialectCall) {
  const { html_format: format } = readParameters(call.context, query);
  const mail = await find(call);
  const raw = await readRaw(call.context, call.db, mail);
  const content = await call.receivedReading.content(mail.orgId, raw);
  const { raw: url, expiresAt } = linksOf(call, mail);
  const html = content?.html ?? null;
  return {
    object: 'email',
    ...fields(mail, content),
    html: html !== null && format === 'data_uri' ? await withImages(call, { mail, raw, html }) : html,
    text: content?.text ?? null,
    headers: content && headersOf(content),
    raw: { download_url: url, expires_at: iso(expiresAt) },
  };
}

function linksOf({ receivedLinks, now }: DialectCall, mail: ReceivedMail) {
  return linksTo(mail, receivedLinks, now);
}

/** One value for each name; the values of a field that occurs several times are lines of it. */
function headersOf({ headers }: ReceivedContent): Record<string, string> {
  const byName = Map.groupBy(headers, ({ name }) => name.toLowerCase());
  return Object.fromEntries(
    [...byName].map(([name, all]) => [name, all.map(({ value }) => value).join('\n')]),
  );
}

/** Of an answer, in which each reference to an image is a copy of it. If they are more, the HTML keeps the references. */
const maxImages = 20;
const maxImageBytes = 4 * 1024 * 1024;

const imageReference = /\bcid:([^"'\s<>)]{1,998})/gi;

/** The HTML with its own images in it (RFC 2397) in place of references to parts (RFC 2392). */
async function withImages(
  { receivedReading }: DialectCall,
  { mail, raw, html }: { mail: ReceivedMail; raw: Buffer; html: string },
): Promise<string> {
  const copies = new Map<string | null, number>();
  for (const [, id] of html.matchAll(imageReference)) copies.set(id!, (copies.get(id!) ?? 0) + 1);
  const images = mail.summary.attachments.filter(({ contentId }) => copies.has(contentId));
  const size = images.reduce((sum, image) => sum + image.size * copies.get(image.contentId)!, 0);
  if (images.length === 0 || images.length > maxImages || size > maxImageBytes) return html;
  const byId = new Map<string, string>();
  for (const { contentId, position, type } of images) {
    const bytes = await receivedReading.file(mail.orgId, raw, position);
    if (bytes) byId.set(contentId!, `data:${type};base64,${bytes.toString('base64')}`);
  }
  return html.replace(imageReference, (reference, id) => byId.get(id) ?? reference);
}

async function listAttachments(call: DialectCall) {
  const mail = await find(call);
  const files = attachmentsOf(call, mail);
  return listOf(call, files.toReversed(), (file) => file);
}

async function getAttachment(call: DialectCall) {
  const mail = await find(call);
  const file = attachmentsOf(call, mail).find(({ id }) => id === call.params.file);
  return { object: 'attachment', ...requireItem(file ?? null, 'attachment') };
}

function attachmentsOf(call: DialectCall, mail: ReceivedMail) {
  const { attachments, expiresAt } = linksOf(call, mail);
  return mail.summary.attachments.map((one) => {
    const { filename, content_id: contentId, ...rest } = resendAttachment(one);
    return {
      ...rest,
      ...(filename !== null && { filename }),
      ...(contentId !== null && { content_id: contentId }),
      download_url: attachments[one.position]!,
      expires_at: iso(expiresAt),
    };
  });
}
