/** Leaves in the directory TEST_COSTS what this process and its children have cost, for `npm test -- --slowest`. */
import { writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import test from 'ava';
import { cpuSeconds } from './load/processes.ts';

const directory = process.env.TEST_COSTS;
const room = basename(test.meta.file, '.ts');
if (directory)
  process.on('exit', () => writeFileSync(join(directory, room), String(cpuSeconds([process.pid]))));
