/** The thread that reads mail from strangers, for bounces/isolated-parser.ts. Nobody imports this file. */
import { parentPort } from 'node:worker_threads';
import { serveParsing } from './isolated-parser.ts';
import { readMail } from './parse/parse-returned.ts';

if (import.meta.main && parentPort) serveParsing(parentPort, readMail);
