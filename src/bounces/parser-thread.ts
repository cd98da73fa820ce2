/** Entry of the parser thread that isolated-parser.ts starts. No file imports it. */
import { parentPort } from 'node:worker_threads';
import { serveParsing } from './isolated-parser.ts';
import { readMail } from './parse/parse-bounce.ts';

if (import.meta.main && parentPort) serveParsing(parentPort, readMail);
