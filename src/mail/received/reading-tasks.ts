/**
 * Reads received mail on a thread of its own (platform/base/guarded-thread.ts), for its reception and later for those who fetch
 * it. A mail that ends that thread counts as unreadable: it is taken all the same, and its bytes can be fetched. If the thread
 * does not start, the error is ours. The thread never waits for DNS: it is given the keys.
 */
import type { MessagePort } from 'node:worker_threads';
import {
  bufferOf,
  GuardedThread,
  type GuardedThreadParts,
  serveTasks,
  ThreadEnded,
} from '#platform/base/guarded-thread.ts';
import { checkSignatures, type SignatureChecks } from '#platform/vendor/mailauth-signatures.ts';
import { type ReadMail, readContent, readFile, readMail } from './read-mail.ts';
import type { ReceivedContent } from './received-mail.ts';

/** The TXT records with the keys of signatures, by lower-case name; null: DNS gave no answer. */
export type KeyRecords = Record<string, string[][] | null>;

type Task =
  | { kind: 'mail'; raw: Uint8Array }
  | { kind: 'content'; raw: Uint8Array }
  | { kind: 'file'; raw: Uint8Array; position: number }
  | { kind: 'signatures'; raw: Uint8Array; keys: KeyRecords };

/** The results are null if the mail cannot be read, or not in time. Organizations take turns. */
export interface ReceivedReader {
  mail(orgId: string, raw: Buffer): Promise<ReadMail | null>;
  signatures(orgId: string, raw: Buffer, keys: KeyRecords): Promise<SignatureChecks | null>;
  content(orgId: string, raw: Buffer): Promise<ReceivedContent | null>;
  /** The bytes of an attachment; null also if there is none at this position. */
  file(orgId: string, raw: Buffer, position: number): Promise<Buffer | null>;
  close(): Promise<void>;
}

export function createReceivedReader(parts: GuardedThreadParts): ReceivedReader {
  const thread = new GuardedThread<Task, unknown>('reading a received mail', parts);
  async function run<Answer>(orgId: string, task: Task): Promise<Answer | null> {
    try {
      return (await thread.run(task, orgId)) as Answer;
    } catch (error) {
      if (error instanceof ThreadEnded) return null;
      throw error;
    }
  }
  return {
    mail: (orgId, raw) => run(orgId, { kind: 'mail', raw }),
    signatures: (orgId, raw, keys) => run(orgId, { kind: 'signatures', raw, keys }),
    content: (orgId, raw) => run(orgId, { kind: 'content', raw }),
    async file(orgId, raw, position) {
      const bytes = await run<Uint8Array>(orgId, { kind: 'file', raw, position });
      return bytes && bufferOf(bytes);
    },
    close: () => thread.close(),
  };
}

/** The thread's side. */
export function serveReading(port: MessagePort): void {
  serveTasks(port, async (task: Task) => {
    const raw = bufferOf(task.raw);
    try {
      if (task.kind === 'mail') return readMail(raw);
      if (task.kind === 'content') return readContent(raw);
      if (task.kind === 'file') return readFile(raw, task.position);
      return await checkSignatures(raw, resolverOf(task.keys));
    } catch {
      // A mail that a library does not take is as unreadable as one that takes too long.
      return null;
    }
  });
}

function resolverOf(keys: KeyRecords) {
  return async (name: string) => {
    const records = keys[name.toLowerCase().replace(/\.$/, '')];
    if (records && records.length > 0) return records;
    throw Object.assign(new Error(`no key at ${name}`), { code: records ? 'ENOTFOUND' : 'ESERVFAIL' });
  };
}
