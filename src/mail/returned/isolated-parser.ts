/**
 * Parses mail from strangers on a thread of its own (platform/base/guarded-thread.ts). A mail that ends that thread counts as
 * unreadable. If the thread does not start, `read` rejects, so the client gets 451 and retries.
 */
import type { MessagePort } from 'node:worker_threads';
import {
  GuardedThread,
  type GuardedThreadParts,
  serveTasks,
  ThreadEnded,
} from '#platform/base/guarded-thread.ts';
import type { ParseResult } from './parse-result.ts';
import type { AddressRole } from './service-addresses.ts';

interface Task {
  bytes: Uint8Array;
  role: AddressRole;
  fromNullSender: boolean;
}

const tooMuch = 'no report can be read: parsing the mail takes too much time or memory';

export function createIsolatedParser(parts: GuardedThreadParts) {
  const thread = new GuardedThread<Task, ParseResult>('parsing a returned mail', parts);
  return {
    /** Senders take turns: `network` is that of the client. */
    async read(
      bytes: Uint8Array,
      role: AddressRole,
      { fromNullSender = false, network = '' } = {},
    ): Promise<ParseResult> {
      try {
        return await thread.run({ bytes, role, fromNullSender }, network);
      } catch (error) {
        if (error instanceof ThreadEnded)
          return role === 'reports' ? { kind: 'letter', why: tooMuch } : { kind: 'letter' };
        throw error;
      }
    },
    close: () => thread.close(),
  };
}

/** The thread's side. */
export function serveParsing(
  port: MessagePort,
  read: (bytes: Uint8Array, role: AddressRole, fromNullSender: boolean) => Promise<ParseResult>,
): void {
  serveTasks(port, ({ bytes, role, fromNullSender }: Task) => read(bytes, role, fromNullSender));
}
