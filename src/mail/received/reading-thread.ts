/** Entry of the thread that reading-tasks.ts describes. No file imports it. */
import { parentPort } from 'node:worker_threads';
import { serveReading } from './reading-tasks.ts';

if (import.meta.main && parentPort) serveReading(parentPort);
