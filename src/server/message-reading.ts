/**
 * Reads whole messages on a thread of its own, stored ones for pages and files, and large ones that are submitted: their senders
 * have chosen the content, and the main thread serves all requests. The result is null if a message cannot be read, or not in
 * time. Organizations take turns.
 */
import type { MessageReading } from '#front/dashboard/page.ts';
import { readHtml } from '#front/dashboard/pages/email/email-content.ts';
import { withoutSignatures } from '#front/dashboard/pages/email/resend.ts';
import { shownEmail } from '#front/dashboard/pages/email/shown-email.ts';
import { filesOf, type SentFile } from '#front/dialects/sent-files.ts';
import { type SubmittedResult, submittedResult } from '#front/submission/read-submitted.ts';
import type { Submitted } from '#front/submission/send-request.ts';
import { readContent, readFile, readMail } from '#mail/received/read-mail.ts';
import type { ReceivedReader } from '#mail/received/reading-tasks.ts';
import { createTrackingLinks } from '#mail/record/tracking/tracking-links.ts';
import { untracked } from '#mail/record/tracking/untracked.ts';
import type { PostBody } from '#mail/webhooks/received/received-post.ts';
import { type ReceivedOrder, writeReceived } from '#mail/webhooks/received/write-received.ts';
import {
  bufferOf,
  GuardedThread,
  type GuardedThreadParts,
  ThreadEnded,
} from '#platform/base/guarded-thread.ts';
import type { SecretSource, Secrets } from '#platform/base/secrets.ts';
import type { ServerContext } from './context.ts';

/** The work that the thread can do with a message. */
type Readings = ReturnType<typeof createReadings>;

interface Task {
  reading: keyof Readings;
  raw: Uint8Array;
  option: unknown;
}

export interface MessageReader extends MessageReading, Pick<ReceivedReader, 'mail' | 'content' | 'file'> {
  /** The attached files; the one with the id `wanted` has its content. */
  files(orgId: string, raw: Buffer, wanted: string | null): Promise<SentFile[] | null>;
  submitted(orgId: string, raw: Buffer, submitted: Submitted): Promise<SubmittedResult | null>;
  /** The body of a post of a received mail. */
  receivedPost(orgId: string, raw: Buffer, order: ReceivedOrder): Promise<PostBody | null>;
  close(): Promise<void>;
}

/** Memory limits of the thread. */
const resourceLimits = { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 32 };

export function createReadings(secrets: Secrets) {
  const links = createTrackingLinks(secrets);
  return {
    shown: (raw: Buffer, view: string | null) => shownEmail(raw, view, links),
    html: (raw: Buffer) => readHtml(raw, (text) => untracked(text, links)),
    unsent: (raw: Buffer) => withoutSignatures(raw, links),
    files: (raw: Buffer, wanted: string | null) => filesOf(raw, wanted),
    submitted: submittedResult,
    receivedMail: readMail,
    receivedContent: readContent,
    receivedFile: readFile,
    receivedPost: writeReceived,
  };
}

/** The thread's side. */
export function readingOf(readings: Readings): (task: Task) => unknown {
  return ({ reading, raw, option }) => readings[reading](bufferOf(raw), option as never);
}

export function createMessageReader(
  { dataDir, secret, secretOthers }: SecretSource,
  { startThread, onError }: Pick<ServerContext, 'startThread' | 'onError'>,
  guard: Partial<GuardedThreadParts> = {},
): MessageReader {
  const workerData = { dataDir, secret, secretOthers };
  const thread = new GuardedThread<Task, unknown>('reading a message', {
    spawn: () => startThread(new URL('./message-thread.ts', import.meta.url), { workerData, resourceLimits }),
    onError,
    ...guard,
  });
  async function read<Name extends keyof Readings>(
    reading: Name,
    orgId: string,
    raw: Buffer,
    option?: Parameters<Readings[Name]>[1],
  ): Promise<ReturnType<Readings[Name]> | null> {
    try {
      return (await thread.run({ reading, raw, option }, orgId)) as ReturnType<Readings[Name]>;
    } catch (error) {
      if (error instanceof ThreadEnded) return null;
      throw error;
    }
  }
  return {
    shown: (orgId, raw, view) => read('shown', orgId, raw, view),
    html: (orgId, raw) => read('html', orgId, raw),
    async unsent(orgId, raw) {
      const bytes = await read('unsent', orgId, raw);
      return bytes && bufferOf(bytes);
    },
    async files(orgId, raw, wanted) {
      const files = await read('files', orgId, raw, wanted);
      return files?.map((file) => ({ ...file, content: file.content && bufferOf(file.content) })) ?? null;
    },
    submitted: (orgId, raw, submitted) => read('submitted', orgId, raw, submitted),
    mail: (orgId, raw) => read('receivedMail', orgId, raw),
    content: (orgId, raw) => read('receivedContent', orgId, raw),
    async file(orgId, raw, position) {
      const bytes = await read('receivedFile', orgId, raw, position);
      return bytes && bufferOf(bytes);
    },
    async receivedPost(orgId, raw, order) {
      const post = await read('receivedPost', orgId, raw, order);
      return post && { ...post, body: bufferOf(post.body) };
    },
    close: () => thread.close(),
  };
}
