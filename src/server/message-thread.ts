/**
 * Entry of the thread that reads stored messages (message-reading.ts), which starts it with the location of the secrets. No
 * file imports it.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { serveTasks } from '#platform/base/guarded-thread.ts';
import { loadSecrets, type SecretSource } from '#platform/base/secrets.ts';
import { createReadings, readingOf } from './message-reading.ts';

if (import.meta.main && parentPort)
  serveTasks(parentPort, readingOf(createReadings(loadSecrets(workerData as SecretSource))));
