/** The heap limits of worker threads, in a process that is started with the flags of scripts/start. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';

const root = join(import.meta.dirname, '../../..');

const program = `
  import { Worker } from 'node:worker_threads';
  import { getHeapStatistics } from 'node:v8';
  import { clearHeapFlags } from ${JSON.stringify(join(root, 'src/platform/base/v8-flags.ts'))};

  const limitMb = "process.getBuiltinModule('node:v8').getHeapStatistics().heap_size_limit / 2 ** 20";
  const ofThread = () => new Promise((resolve) => {
    const code = "process.getBuiltinModule('node:worker_threads').parentPort.postMessage(" + limitMb + ")";
    const resourceLimits = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 12 };
    new Worker(code, { eval: true, resourceLimits }).once('message', resolve);
  });
  const before = await ofThread();
  clearHeapFlags();
  console.log(JSON.stringify([getHeapStatistics().heap_size_limit / 2 ** 20, before, await ofThread()]));
`;

test('a worker thread has its own heap limit, whatever flags the main thread was started with', async (t) => {
  const flags = /NODE_OPTIONS="([^$]+) /.exec(readFileSync(join(root, 'scripts/start'), 'utf8'))![1]!;
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [...flags.split(' '), '--input-type=module', '--eval', program],
    { env: {} },
  );
  const [main, before, after] = JSON.parse(stdout);
  t.true(main > 1000, `${main} MB for the main thread`);
  t.is(before, main, 'V8 prefers its flags; otherwise src/platform/base/v8-flags.ts is not needed');
  t.true(after < 80, `${after} MB for a thread that was given 64`);
});
