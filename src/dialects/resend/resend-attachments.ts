/** The attachments of a sent email, read from its message for as long as that is kept. */
import { uuidIn } from '../../api/query.ts';
import { iso } from '../../base/clock.ts';
import { readTree } from '../../compose/mime-tree.ts';
import { bodyOf, contentIdOf, isInline, shownParts } from '../../compose/shown-parts.ts';
import { Refusal } from '../../mail/refusal.ts';
import {
  type DialectCall,
  type DialectRoute,
  type OpenCall,
  type OpenRoute,
  requireItem,
} from '../dialect.ts';
import { findEmail } from './resend-emails.ts';
import { listOf } from './resend-lists.ts';

const grant = 'email:read';

export const resendAttachmentRoutes: DialectRoute[] = [
  { route: 'GET /emails/:id/attachments', grant, respond: list },
  { route: 'GET /emails/:id/attachments/:file', grant, respond: getOne },
];

export const resendOpenRoutes: OpenRoute[] = [
  { path: '/emails/:id/attachments/:file/content', respond: download },
];

async function list(call: DialectCall) {
  const { id } = await findEmail(call);
  const files = await filesOf(call, id);
  return listOf(call, files.toReversed(), (file) => present(call, id, file));
}

async function getOne(call: DialectCall) {
  const { id } = await findEmail(call);
  return { object: 'attachment', ...present(call, id, await fileOf(call, id)) };
}

type File = Awaited<ReturnType<typeof filesOf>>[number];

/** An id is the position in the message. */
async function filesOf({ store }: Pick<DialectCall, 'store'>, emailId: string) {
  const [raw] = await store.readSources(emailId);
  const tree = raw && readTree(raw);
  if (!tree) throw new Refusal('NOT_FOUND', 'The message of this email is no longer kept.');
  return shownParts(tree).attached.map((part, index) => ({
    id: String(index),
    part,
    content: bodyOf(raw, part),
  }));
}

async function fileOf(call: Pick<DialectCall, 'store' | 'params'>, emailId: string): Promise<File> {
  const files = await filesOf(call, emailId);
  return requireItem(files.find(({ id }) => id === call.params.file) ?? null, 'attachment');
}

function present({ fileLinks, orgId, now }: DialectCall, emailId: string, { id, part, content }: File) {
  const path = `/compat/resend/emails/${emailId}/attachments/${id}/content`;
  const { url, expiresAt } = fileLinks.sign({ orgId, emailId, id }, path, now);
  return {
    id,
    filename: part.filename ?? undefined,
    size: content.length,
    content_type: part.type,
    content_disposition: isInline(part) ? 'inline' : 'attachment',
    content_id: contentIdOf(part) ?? undefined,
    download_url: url,
    expires_at: iso(expiresAt),
  };
}

/** What a stranger sent is never shown in a page of this host. */
async function download(call: OpenCall) {
  const { context, params, store, fileLinks, now } = call;
  const emailId = uuidIn(params.id!);
  const orgId = emailId && fileLinks.read({ emailId, id: params.file! }, context.query, now);
  const email = orgId && (await store.findEmail(orgId, emailId));
  if (!email) throw new Refusal('NOT_FOUND', 'The link is not valid, or it has expired. Ask for a new one.');
  const { part, content } = await fileOf(call, email.id);
  context.attachment(part.filename ?? 'attachment');
  context.type = part.type;
  context.set('Content-Security-Policy', "default-src 'none'; sandbox");
  context.set('Cache-Control', 'private, no-store');
  return content;
}
