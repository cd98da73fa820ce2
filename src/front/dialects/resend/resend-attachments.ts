/** The attachments of a sent email. */

import type { DialectCall, DialectRoute, OpenRoute } from '#front/dialects/dialect.ts';
import type { SentFile } from '#front/dialects/sent-files.ts';
import { downloadFile, requireFile, sentFiles } from '#front/dialects/serve-files.ts';
import { iso } from '#platform/base/clock.ts';
import { requireEmail } from './resend-emails.ts';
import { listOf } from './resend-lists.ts';

const grant = 'email:read';

export const resendAttachmentRoutes: DialectRoute[] = [
  { route: 'GET /emails/:id/attachments', grant, respond: list },
  { route: 'GET /emails/:id/attachments/:file', grant, respond: getOne },
];

export const resendOpenRoutes: OpenRoute[] = [
  { path: '/emails/:id/attachments/:file/content', respond: downloadFile },
];

async function list(call: DialectCall) {
  const email = await requireEmail(call);
  const files = await sentFiles(call, email);
  return listOf(call, files.toReversed(), (file) => present(call, email.id, file));
}

async function getOne(call: DialectCall) {
  const email = await requireEmail(call);
  const file = await requireFile(call, email, call.params.file!);
  return { object: 'attachment', ...present(call, email.id, file) };
}

function present({ fileLinks, orgId, now }: DialectCall, emailId: string, file: SentFile) {
  const { id, filename, type, isInline, contentId, size } = file;
  const path = `/compat/resend/emails/${emailId}/attachments/${id}/content`;
  const { url, expiresAt } = fileLinks.sign({ orgId, mailId: emailId, id }, path, now);
  return {
    id,
    ...(filename !== null && { filename }),
    size,
    content_type: type,
    content_disposition: isInline ? 'inline' : 'attachment',
    ...(contentId !== null && { content_id: contentId }),
    download_url: url,
    expires_at: iso(expiresAt),
  };
}
