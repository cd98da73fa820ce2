/** The files of a sent email, read from its message for as long as that is kept, and what a link to one of them leads to. */
import { uuidIn } from '../api/query.ts';
import { readTree } from '../compose/mime-tree.ts';
import { bodyOf, contentIdOf, isInline, shownParts } from '../compose/shown-parts.ts';
import { Refusal } from '../mail/refusal.ts';
import { type OpenCall, requireItem } from './dialect.ts';
import type { SentFile } from './dialect-store.ts';

/** Called on a thread of its own. Null if the message cannot be read. */
export function filesOf(raw: Buffer, wanted: string | null): SentFile[] | null {
  const tree = readTree(raw);
  if (!tree) return null;
  return shownParts(tree).attached.map((part, index) => {
    const content = bodyOf(raw, part);
    return {
      id: String(index),
      filename: part.filename,
      type: part.type,
      isInline: isInline(part),
      contentId: contentIdOf(part),
      size: content.length,
      content: String(index) === wanted ? content : null,
    };
  });
}

type FilesCall = Pick<OpenCall, 'context' | 'store'>;

export async function sentFiles(
  { context, store }: FilesCall,
  email: { id: string; orgId: string },
  wanted: string | null = null,
): Promise<SentFile[]> {
  const files = await store.readFiles(context, email, wanted);
  if (files === null) throw new Refusal('NOT_FOUND', 'The message of this email is no longer kept.');
  if (files === 'unreadable')
    throw new Refusal('NOT_FOUND', 'The message of this email has a structure that cannot be read.');
  return files;
}

export async function requireFile(
  call: FilesCall,
  email: { id: string; orgId: string },
  id: string,
): Promise<SentFile> {
  const files = await sentFiles(call, email, id);
  return requireItem(files.find((file) => file.id === id) ?? null, 'attachment');
}

/** The path has `:id` (of the email) and `:file`. A file that somebody sent is never shown in a page of this host. */
export async function downloadFile(call: OpenCall): Promise<Buffer> {
  const { context, params, store, fileLinks, now } = call;
  const emailId = uuidIn(params.id!);
  const orgId = emailId && fileLinks.read({ emailId, id: params.file! }, context.query, now);
  const email = orgId && (await store.findEmail(orgId, emailId));
  if (!email) throw new Refusal('NOT_FOUND', 'The link is not valid, or it has expired. Ask for a new one.');
  const { filename, type, content } = await requireFile(call, { id: email.id, orgId }, params.file!);
  const name = shownName(filename ?? 'attachment');
  context.attachment(name, { fallback: asciiOf(name) });
  context.type = type;
  context.set('Content-Security-Policy', "default-src 'none'; sandbox");
  context.set('Cache-Control', 'private, no-store');
  return content!;
}

/** Without what no header can have. */
function shownName(filename: string): string {
  return filename.replace(/\p{Cc}+/gu, '_').toWellFormed();
}

/** The name for clients that do not read `filename*` (RFC 6266 section 4.3, appendix D): `größe.csv` is `gro_e.csv`. */
function asciiOf(name: string): string {
  return name
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .replace(/[^\x20-\x7e]/gu, '_');
}
