/** The attachments of a sent email. */
import { iso } from '../../base/clock.ts';
import type { DialectCall, DialectRoute, OpenRoute } from '../dialect.ts';
import { downloadFile, requireFile, type SentFile, sentFiles } from '../sent-files.ts';
import { findEmail } from './resend-emails.ts';
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
  const { id } = await findEmail(call);
  const files = await sentFiles(call.store, id);
  return listOf(call, files.toReversed(), (file) => present(call, id, file));
}

async function getOne(call: DialectCall) {
  const { id } = await findEmail(call);
  const file = await requireFile(call.store, id, call.params.file!);
  return { object: 'attachment', ...present(call, id, file) };
}

function present({ fileLinks, orgId, now }: DialectCall, emailId: string, file: SentFile) {
  const { id, filename, type, isInline, contentId, content } = file;
  const path = `/compat/resend/emails/${emailId}/attachments/${id}/content`;
  const { url, expiresAt } = fileLinks.sign({ orgId, emailId, id }, path, now);
  return {
    id,
    ...(filename !== null && { filename }),
    size: content.length,
    content_type: type,
    content_disposition: isInline ? 'inline' : 'attachment',
    ...(contentId !== null && { content_id: contentId }),
    download_url: url,
    expires_at: iso(expiresAt),
  };
}
