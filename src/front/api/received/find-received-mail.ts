/** Finds the mail that a call reads, and a part of it. */
import type { Context } from 'koa';
import type { Caller } from '#accounts/api-keys.ts';
import { CallSlots } from '#front/http/server-busy.ts';
import type { ReceivedReader } from '#mail/received/reading-tasks.ts';
import type { ReceivedMail } from '#mail/received/received-mail.ts';
import { findReceived, rawOf } from '#mail/received/rows/received-mails.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { Refusal } from '#platform/values/refusal.ts';
import { isReceivedTest } from '#platform/values/test-route.ts';
import type { StrangersFile } from './answer-file.ts';

/** Mails in memory at once for an organization's calls, until they have been sent; each may be 25 MiB. */
const mailSlots = new CallSlots({ ofOne: 4 });

/** A test key finds test mail only. */
export async function findOwnReceived(
  db: Db,
  id: string,
  orgId: string,
  { isTest }: Pick<Caller, 'isTest'>,
): Promise<ReceivedMail | null> {
  const mail = await findReceived(db, orgId, id);
  return mail && (!isTest || isReceivedTest(mail)) ? mail : null;
}

/** The bytes of a mail, for an answer to this call. */
export async function readRaw(
  context: Context,
  db: Db,
  { orgId, id }: Pick<ReceivedMail, 'orgId' | 'id'>,
): Promise<Buffer> {
  mailSlots.takeUntilSent(context, orgId);
  const raw = await rawOf(db, orgId, id);
  if (raw) return raw;
  throw new Refusal('NOT_FOUND', 'There is no such received mail.');
}

/** `part`: `raw`, `text`, `html`, or the position of an attachment; null if the mail has no such part. */
export async function partOf(
  reading: Pick<ReceivedReader, 'content' | 'file'>,
  mail: ReceivedMail,
  raw: Buffer,
  part: string,
): Promise<StrangersFile | null> {
  if (part === 'raw') return { filename: `${mail.id}.eml`, type: 'message/rfc822', content: raw };
  if (part === 'text' || part === 'html') {
    const text = (await reading.content(mail.orgId, raw))?.[part] ?? null;
    const [extension, type] = part === 'text' ? ['txt', 'text/plain'] : ['html', 'text/html'];
    return text === null
      ? null
      : { filename: `${mail.id}.${extension}`, type: `${type}; charset=utf-8`, content: Buffer.from(text) };
  }
  const file = mail.summary.attachments.find(({ position }) => String(position) === part);
  const content = file ? await reading.file(mail.orgId, raw, file.position) : null;
  return file && content ? { filename: file.filename, type: file.type, content } : null;
}
