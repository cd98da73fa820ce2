/**
 * Worker threads inline: what a thread of ours does when it gets a message runs as an event of the machine, a moment later.
 * Messages are cloned, as between threads. An error in a task ends the thread.
 */
import { EventEmitter } from 'node:events';
import { syncBuiltinESMExports } from 'node:module';
import { basename } from 'node:path';
import threads, { type MessagePort } from 'node:worker_threads';
import { scheduler } from './scheduler.ts';

type Serve = (port: MessagePort, workerData: never) => void;

/** What the files do that are the entries of our threads, by name. Loaded first: loading is not a function of the seed. */
let entries: Record<string, Serve> = {};

async function loadEntries(): Promise<Record<string, Serve>> {
  const { serveOrders } = await import('#mail/compose/compose-threads.ts');
  const { createOrderComposer } = await import('#server/compose-orders.ts');
  const { loadSecrets } = await import('#platform/base/secrets.ts');
  const { serveReading } = await import('#mail/received/reading-tasks.ts');
  const { serveParsing } = await import('#mail/returned/isolated-parser.ts');
  const { readMail } = await import('#mail/returned/parse/parse-bounce.ts');
  const { serveTasks } = await import('#platform/base/guarded-thread.ts');
  const { createReadings, readingOf } = await import('#server/message-reading.ts');
  return {
    'compose-thread.ts': (port, workerData) =>
      serveOrders(port, createOrderComposer(loadSecrets(workerData))),
    'reading-thread.ts': serveReading,
    'parser-thread.ts': (port) => serveParsing(port, readMail),
    'message-thread.ts': (port, workerData) =>
      serveTasks(port, readingOf(createReadings(loadSecrets(workerData)))),
  };
}

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
    const serve = entries[basename(file.pathname)];
    if (!serve) throw new Error(`no simulated thread for ${file.pathname}`);
    serve(inside as unknown as MessagePort, structuredClone(workerData) as never);
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
  entries = await loadEntries();
}
