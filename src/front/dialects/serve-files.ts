/** Finds the files of a sent email for as long as its message is kept, and serves the links to them. */
import { answerFile } from '#front/api/received/answer-file.ts';
import { linkedOrganization } from '#front/api/received/linked-organization.ts';
import { uuidIn } from '#front/http/query.ts';
import { CallSlots } from '#front/http/server-busy.ts';
import { type EmailRecord, findEmail, readSources } from '#mail/record/rows/emails.ts';
import { Refusal } from '#platform/values/refusal.ts';
import { type OpenCall, requireItem } from './dialect.ts';
import type { SentFile } from './sent-files.ts';

/** Messages in memory at once for an organization's calls, until they have been sent; each may be many MiB. */
const messageSlots = new CallSlots({ ofOne: 6 });

type FilesCall = Pick<OpenCall, 'context' | 'db' | 'readFiles'>;

/** The message of an email as it is sent, the first one if each recipient has one; null if it is no longer kept. */
export async function readMessage(
  { db, context }: Pick<FilesCall, 'db' | 'context'>,
  { id, orgId }: Pick<EmailRecord, 'id' | 'orgId'>,
): Promise<Buffer | null> {
  messageSlots.takeUntilSent(context, orgId);
  const [message = null] = await readSources(db, id, 1);
  return message;
}

export async function sentFiles(
  call: FilesCall,
  email: EmailRecord,
  wanted: string | null = null,
): Promise<SentFile[]> {
  const message = await readMessage(call, email);
  if (!message) throw new Refusal('NOT_FOUND', 'The message of this email is no longer kept.');
  const files = await call.readFiles(email.orgId, message, wanted);
  if (files) return files;
  throw new Refusal('NOT_FOUND', 'The message of this email has a structure that cannot be read.');
}

export async function requireFile(call: FilesCall, email: EmailRecord, id: string): Promise<SentFile> {
  const files = await sentFiles(call, email, id);
  return requireItem(files.find((file) => file.id === id) ?? null, 'attachment');
}

/** The path has `:id` (of the email) and `:file`. */
export async function downloadFile(call: OpenCall): Promise<Buffer> {
  const { context, params, db, fileLinks, now } = call;
  const emailId = uuidIn(params.id!);
  const link = { mailId: emailId ?? '', id: params.file! };
  const orgId = emailId && (await linkedOrganization(db, fileLinks, link, context.query, now));
  const email = orgId && (await findEmail(db, emailId, orgId));
  if (!email) throw new Refusal('NOT_FOUND', 'The link is not valid, or it has expired. Ask for a new one.');
  const { filename, type, content } = await requireFile(call, email, params.file!);
  return answerFile(context, { filename, type, content: content! });
}
