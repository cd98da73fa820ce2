/**
 * The work of a composing thread, in the test's own process: a thread loads its modules anew, for 0.2 s of CPU time in each
 * world. Orders and answers are cloned and transferred as to a thread. `npm run test:slow` has the threads.
 */
import { EventEmitter } from 'node:events';
import { MessageChannel, type Worker } from 'node:worker_threads';
import { serveOrders } from '#mail/compose/compose-threads.ts';
import { loadSecrets } from '#platform/base/secrets.ts';
import { createOrderComposer } from '#server/compose-orders.ts';
import type { Overrides } from '#server/context.ts';

const startHere: Overrides['startComposer'] = (source) => {
  const { port1, port2 } = new MessageChannel();
  serveOrders(port2, createOrderComposer(loadSecrets(source)));
  const thread = new EventEmitter();
  port1.on('message', (answers) => thread.emit('message', answers));
  return Object.assign(thread, {
    postMessage: port1.postMessage.bind(port1),
    async terminate() {
      port1.close();
      thread.emit('exit', 1);
      return 1;
    },
  }) as unknown as Worker;
};

export const composeHere: Partial<Overrides> = process.env.TEST_SLOW ? {} : { startComposer: startHere };
