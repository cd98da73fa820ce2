/** Entry of the parser thread that isolated-parser.ts starts. No file imports it. */
import { parentPort } from 'node:worker_threads';
import { readMail } from '#mail/returned/parse/parse-bounce.ts';
import { serveParsing } from './isolated-parser.ts';

if (import.meta.main && parentPort) serveParsing(parentPort, readMail);
