/**
 * Ends the process that loads it with SIGKILL when it reaches a named step (src/platform/base/failpoints.ts) for the nth time:
 * `node --import …/kill-at.ts?step=accepted&nth=7 src/main.ts`. The next line of the program does not run. It counts
 * from the first send on, or with `&from=start` what happens before as well.
 */
import { subscribe } from 'node:diagnostics_channel';

const { searchParams } = new URL(import.meta.url);
let left = Number(searchParams.get('nth'));
let counts = searchParams.get('from') === 'start';

subscribe('postern:step', (step) => {
  counts ||= step === 'composed';
  if (!counts || step !== searchParams.get('step')) return;
  left -= 1;
  if (left === 0) process.kill(process.pid, 'SIGKILL');
});
