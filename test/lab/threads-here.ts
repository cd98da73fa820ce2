/**
 * The work of threads, in the test's own process: a thread loads its modules by itself, for 0.2 s of CPU time in each world.
 * Messages are cloned and transferred as to a thread, and an error in a task ends it. `npm run test:slow` has the threads.
 */
import { EventEmitter } from 'node:events';
import type { MessagePort, Worker } from 'node:worker_threads';
import type { Overrides } from '#server/context.ts';
import { serveAs } from './thread-entries.ts';

class Port extends EventEmitter {
  other!: EventEmitter;

  constructor() {
    super({ captureRejections: true });
  }

  postMessage(message: unknown, transfer: readonly ArrayBuffer[] = []): void {
    const copy = structuredClone(message, { transfer: [...transfer] });
    setImmediate(() => this.other.emit('message', copy));
  }
}

class ThreadHere extends Port {
  #isOver = false;

  constructor(entry: URL, workerData: unknown) {
    super();
    const inside = new Port();
    inside.other = this;
    this.other = inside;
    inside.on('error', (error) => {
      if (!this.#isOver) this.emit('error', error);
      void this.terminate();
    });
    serveAs(entry, inside as unknown as MessagePort, structuredClone(workerData));
  }

  async terminate(): Promise<number> {
    if (!this.#isOver) setImmediate(() => this.emit('exit', 1));
    this.#isOver = true;
    this.other.removeAllListeners('message');
    return 1;
  }
}

export const threadsHere: Partial<Overrides> = process.env.TEST_SLOW
  ? {}
  : { startThread: (entry, { workerData }) => new ThreadHere(entry, workerData) as unknown as Worker };
