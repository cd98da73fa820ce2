/**
 * Parses mail from strangers on a separate thread, one at a time. A mail that takes too long or too much memory ends that
 * thread only, and counts as unreadable; the main thread and other mail are not affected.
 *
 * If the thread does not start, the fault is ours and not the mail's: `read` rejects, so the client gets 451 and retries.
 */
import type { MessagePort, Worker } from 'node:worker_threads';
import type { ParseResult } from './parse/parse-result.ts';
import type { AddressRole } from './service-addresses.ts';

export interface IsolatedParserParts {
  /** Starts a thread that runs `serveParsing`. */
  spawn(): Worker;
  onError(what: string, error: unknown): void;
  /** How long one mail may take. Most take a few milliseconds, but a busy machine must not make a bounce unreadable. */
  timeoutMs?: number;
}

interface Task {
  bytes: Uint8Array;
  role: AddressRole;
  fromNullSender: boolean;
  resolve(reading: ParseResult): void;
  reject(error: unknown): void;
}

export function createIsolatedParser({ spawn, onError, timeoutMs = 10_000 }: IsolatedParserParts) {
  const waiting: Task[] = [];
  let thread: Worker | null = null;
  let current: Task | null = null;
  let isClosed = false;

  function next(): void {
    if (current || isClosed || waiting.length === 0) return;
    current = waiting.shift()!;
    thread ??= start();
    const { bytes, role, fromNullSender } = current;
    thread.postMessage({ bytes, role, fromNullSender });
  }

  function start(): Worker {
    const fresh = spawn();
    let hasStarted = false;
    let cause: unknown;
    let timer: NodeJS.Timeout | undefined;
    let afterMessages: NodeJS.Immediate | undefined;
    const stopTimer = () => {
      clearTimeout(timer);
      clearImmediate(afterMessages);
    };
    const endThread = () => {
      cause = new Error(`not read within ${timeoutMs} ms`);
      fresh.terminate();
    };
    fresh.on('message', (message: 'begun' | ParseResult) => {
      hasStarted = true;
      stopTimer();
      if (message === 'begun') {
        timer = setTimeout(() => {
          // If this thread was busy, the timer fires before the answer, which arrived in time, is handed over.
          afterMessages = setImmediate(endThread);
        }, timeoutMs);
      } else {
        settle((task) => task.resolve(message));
      }
    });
    fresh.on('error', (error) => {
      cause = error;
    });
    fresh.once('exit', () => {
      stopTimer();
      thread = null;
      if (isClosed) return;
      onError('parsing a returned mail ended the parser thread', cause);
      const lost = new Error('the parser thread does not start', { cause });
      settle((task) => (hasStarted ? task.resolve({ is: 'letter' }) : task.reject(lost)));
    });
    return fresh;
  }

  function settle(how: (task: Task) => void): void {
    const task = current;
    current = null;
    if (task) how(task);
    next();
  }

  return {
    read: (bytes: Uint8Array, role: AddressRole, fromNullSender = false) =>
      new Promise<ParseResult>((resolve, reject) => {
        if (isClosed) throw new Error('the parser is closed');
        waiting.push({ bytes, role, fromNullSender, resolve, reject });
        next();
      }),
    async close(): Promise<void> {
      isClosed = true;
      const lost = [current, ...waiting.splice(0)];
      for (const task of lost) task?.reject(new Error('the parser is closed'));
      await thread?.terminate();
    },
  };
}

/** The thread's side. */
export function serveParsing(
  port: MessagePort,
  read: (bytes: Uint8Array, role: AddressRole, fromNullSender: boolean) => Promise<ParseResult>,
): void {
  port.on('message', async ({ bytes, role, fromNullSender }: Omit<Task, 'resolve' | 'reject'>) => {
    port.postMessage('begun');
    port.postMessage(await read(bytes, role, fromNullSender));
  });
}
