/**
 * The entry of a composing thread (mail/compose/compose-threads.ts). start.ts starts it with the location of the secrets, which
 * open the DKIM keys and sign the tracking links here. No file imports it.
 */
import { flushCompileCache } from 'node:module';
import { constants, setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { serveOrders } from '#mail/compose/compose-threads.ts';
import { loadSecrets, type SecretSource } from '#platform/base/secrets.ts';
import { createOrderComposer } from './compose-orders.ts';

if (import.meta.main && parentPort) {
  const { isForLarge, ...source } = workerData as SecretSource & { isForLarge: boolean };
  // On Linux this sets the priority of this thread only. Large mails yield to all other work.
  if (isForLarge && process.platform === 'linux') setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  serveOrders(parentPort, createOrderComposer(loadSecrets(source)));
  flushCompileCache();
}
