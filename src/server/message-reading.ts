/**
 * Reads stored messages for pages and files on a thread of its own: whoever sent them has chosen their content, and everybody's
 * requests are served by the main thread. A message that cannot be read, or not in time, is null. Organizations take turns.
 */
import { Worker } from 'node:worker_threads';
import { GuardedThread, type GuardedThreadParts, ThreadEnded } from '../base/guarded-thread.ts';
import type { SecretSource, Secrets } from '../base/secrets.ts';
import type { MessageReading } from '../dashboard/page.ts';
import { readHtml } from '../dashboard/pages/email/email-content.ts';
import { withoutSignatures } from '../dashboard/pages/email/resend.ts';
import { shownEmail } from '../dashboard/pages/email/shown-email.ts';
import { filesOf, type SentFile } from '../dialects/sent-files.ts';
import { createTrackingLinks } from '../tracking/tracking-links.ts';
import { untracked } from '../tracking/untracked.ts';

/** The work that the thread can do with a message. */
type Readings = ReturnType<typeof createReadings>;

interface Task {
  reading: keyof Readings;
  raw: Uint8Array;
  option: string | null;
}

export interface MessageReader extends MessageReading {
  /** The attached files; the one with the id `wanted` has its content. */
  files(orgId: string, raw: Buffer, wanted: string | null): Promise<SentFile[] | null>;
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
  };
}

/** The thread's side. */
export function readingOf(readings: Readings): (task: Task) => unknown {
  return ({ reading, raw, option }) => readings[reading](bufferOf(raw), option);
}

export function createMessageReader(
  { dataDir, secret, secretOthers }: SecretSource,
  onError: (what: string, error: unknown) => void,
  guard: Partial<GuardedThreadParts> = {},
): MessageReader {
  const workerData = { dataDir, secret, secretOthers };
  const thread = new GuardedThread<Task, unknown>('reading a stored message', {
    spawn: () => new Worker(new URL('./message-thread.ts', import.meta.url), { workerData, resourceLimits }),
    onError,
    ...guard,
  });
  async function read<Name extends keyof Readings>(
    reading: Name,
    orgId: string,
    raw: Buffer,
    option: string | null = null,
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
    close: () => thread.close(),
  };
}

/** A Buffer arrives from another thread as a plain Uint8Array. */
function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}
