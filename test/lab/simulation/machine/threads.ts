/**
 * Worker threads inline: what a thread of ours does when it gets a message runs as an event of the machine, a moment later.
 * Messages are cloned, as between threads. An error in a task ends the thread.
 */
import { EventEmitter } from 'node:events';
import { syncBuiltinESMExports } from 'node:module';
import threads, { type MessagePort } from 'node:worker_threads';
import type { serveAs } from '../../thread-entries.ts';
import { scheduler } from './scheduler.ts';

/** Loaded first: loading is not a function of the seed. */
let serve: typeof serveAs;

const latencyMs = 0.2;

class Port extends EventEmitter {
  other!: EventEmitter;

  postMessage(message: unknown, transfer: readonly ArrayBuffer[] = []): void {
    const copy = structuredClone(message, { transfer: [...transfer] });
    scheduler.after(latencyMs, () => this.other.emit('message', copy));
  }
}

class VirtualWorker extends Port {
  #isOver = false;

  constructor(file: URL, { workerData }: { workerData?: unknown } = {}) {
    super();
    const inside = new Port();
    inside.other = this;
    this.other = inside;
    serve(file, inside as unknown as MessagePort, structuredClone(workerData));
  }

  async terminate(): Promise<number> {
    if (!this.#isOver) scheduler.after(0, () => this.emit('exit', 1));
    this.#isOver = true;
    this.other.removeAllListeners();
    return 1;
  }

  ref() {}

  unref() {}
}

export async function replaceThreads(): Promise<void> {
  Object.assign(threads, { Worker: VirtualWorker });
  syncBuiltinESMExports();
  ({ serveAs: serve } = await import('../../thread-entries.ts'));
}
