/** The thread that reads mail from strangers, for inbound/reader.ts. Nobody imports this file. */
import { parentPort } from 'node:worker_threads';
import { serveReading } from './inbound/reader.ts';
import { readMail } from './inbound/returned/read.ts';

if (import.meta.main && parentPort) serveReading(parentPort, readMail);
