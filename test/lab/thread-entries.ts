/** What the files do that are the entries of our threads, for a thread that is none. */
import { basename } from 'node:path';
import type { MessagePort } from 'node:worker_threads';
import { serveOrders } from '#mail/compose/compose-threads.ts';
import { serveReading } from '#mail/received/reading-tasks.ts';
import { serveParsing } from '#mail/returned/isolated-parser.ts';
import { readMail } from '#mail/returned/parse/parse-bounce.ts';
import { serveTasks } from '#platform/base/guarded-thread.ts';
import { loadSecrets } from '#platform/base/secrets.ts';
import { createOrderComposer } from '#server/compose-orders.ts';
import { createReadings, readingOf } from '#server/message-reading.ts';

const entries: Record<string, (port: MessagePort, workerData: never) => void> = {
  'compose-thread.ts': (port, workerData) => serveOrders(port, createOrderComposer(loadSecrets(workerData))),
  'reading-thread.ts': serveReading,
  'parser-thread.ts': (port) => serveParsing(port, readMail),
  'message-thread.ts': (port, workerData) =>
    serveTasks(port, readingOf(createReadings(loadSecrets(workerData)))),
};

export function serveAs(entry: URL, port: MessagePort, workerData: unknown): void {
  const serve = entries[basename(entry.pathname)];
  if (!serve) throw new Error(`nothing is known to do as ${entry.pathname} does`);
  serve(port, workerData as never);
}
