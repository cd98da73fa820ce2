/**
 * Runs tasks on a thread of its own, one at a time, because their input comes from strangers: a task that takes too long or too
 * much memory ends that thread only, and rejects with ThreadEnded. The main thread and the other tasks are not affected. Tasks
 * of different owners take turns.
 *
 * If the thread does not start, the error is ours and not the task's: `run` rejects with another error.
 */
import type { MessagePort, Worker } from 'node:worker_threads';

export interface GuardedThreadParts {
  /** Starts a thread that runs `serveTasks`. */
  spawn(): Worker;
  onError(what: string, error: unknown): void;
  /** How long one task may take. */
  timeoutMs?: number;
}

/** Most tasks take a few milliseconds, but a busy machine must not make a mail unreadable. */
const defaultTimeoutMs = 10_000;

/** The task ended its thread. */
export class ThreadEnded extends Error {}

interface Waiting<Task, Answer> {
  task: Task;
  resolve(answer: Answer): void;
  reject(error: unknown): void;
}

export class GuardedThread<Task, Answer> {
  readonly #noun: string;
  readonly #parts: GuardedThreadParts;
  /** Keyed by owner; the first owner is next. */
  readonly #waiting = new Map<string, Waiting<Task, Answer>[]>();
  #thread: Worker | null = null;
  #current: Waiting<Task, Answer> | null = null;
  #isClosed = false;

  /** `noun`: what the thread does, for errors. */
  constructor(noun: string, parts: GuardedThreadParts) {
    this.#noun = noun;
    this.#parts = parts;
  }

  run(task: Task, owner = ''): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) throw this.#closed();
      const own = this.#waiting.get(owner) ?? [];
      own.push({ task, resolve, reject });
      this.#waiting.set(owner, own);
      this.#next();
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const lost = [this.#current, ...[...this.#waiting.values()].flat()];
    this.#waiting.clear();
    for (const task of lost) task?.reject(this.#closed());
    await this.#thread?.terminate();
  }

  #next(): void {
    const [turn] = this.#waiting;
    if (this.#current || this.#isClosed || !turn) return;
    const [owner, tasks] = turn;
    this.#current = tasks.shift()!;
    this.#waiting.delete(owner);
    if (tasks.length > 0) this.#waiting.set(owner, tasks);
    this.#thread ??= this.#start();
    this.#thread.postMessage(this.#current.task);
  }

  #start(): Worker {
    const fresh = this.#parts.spawn();
    let hasStarted = false;
    let cause: unknown;
    const deadline = createDeadline(this.#parts.timeoutMs ?? defaultTimeoutMs, (error) => {
      cause = error;
      void fresh.terminate();
    });
    fresh.on('message', (message: 'begun' | Answer) => {
      hasStarted = true;
      deadline.stop();
      if (message === 'begun') deadline.begin();
      else this.#settle((task) => task.resolve(message as Answer));
    });
    fresh.on('error', (error) => {
      cause = error;
    });
    fresh.once('exit', () => {
      deadline.stop();
      this.#thread = null;
      if (this.#isClosed) return;
      this.#parts.onError(`${this.#noun} ended its thread`, cause);
      const lost = hasStarted
        ? new ThreadEnded(`${this.#noun} ended its thread`, { cause })
        : new Error(`the thread for ${this.#noun} does not start`, { cause });
      this.#settle((task) => task.reject(lost));
    });
    return fresh;
  }

  #settle(how: (task: Waiting<Task, Answer>) => void): void {
    const task = this.#current;
    this.#current = null;
    if (task) how(task);
    this.#next();
  }

  #closed(): Error {
    return new Error(`the thread for ${this.#noun} is closed`);
  }
}

function createDeadline(timeoutMs: number, onTimeout: (error: Error) => void) {
  let timer: NodeJS.Timeout | undefined;
  let afterMessages: NodeJS.Immediate | undefined;
  return {
    begin() {
      timer = setTimeout(() => {
        // If the main thread was busy, the timer fires before the answer, which arrived in time, is handed over.
        afterMessages = setImmediate(onTimeout, new Error(`not done within ${timeoutMs} ms`));
      }, timeoutMs);
    },
    stop() {
      clearTimeout(timer);
      clearImmediate(afterMessages);
    },
  };
}

/** A Buffer arrives from another thread as a plain Uint8Array. */
export function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}

/** The thread's side. */
export function serveTasks<Task, Answer>(
  port: MessagePort,
  work: (task: Task) => Answer | Promise<Answer>,
): void {
  port.on('message', async (task: Task) => {
    port.postMessage('begun');
    port.postMessage(await work(task));
  });
}
