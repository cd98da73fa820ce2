/** The log if standard output is not read or cannot be written, in a process of its own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import test from 'ava';
import { temporaryDirectory } from '#lab/evidence.ts';

/** Logs `count` lines of a tenth of a megabyte, and prints the memory that they still take, in megabytes, on standard error. */
const program = (logFormat: string, count: number) => `
  import { setTimeout as sleep } from 'node:timers/promises';
  import { createLog } from ${JSON.stringify(join(import.meta.dirname, '../../../src/platform/base/log.ts'))};

  const log = createLog({ logLevel: 'info', logFormat: '${logFormat}' });
  const held = () => {
    gc();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  const before = held();
  const text = 'x'.repeat(100_000);
  for (let piece = 0; piece < ${count}; piece++) {
    log.info(text);
    if (piece % 20 === 0) await sleep(1);
  }
  process.stderr.write(String(Math.round((held() - before) / 2 ** 20)));
  await log.settled();
  process.exit(0);
`;

/** Logs more than a reader takes at once, and then a line; says so when that line was to be written, and goes on. */
const idleProgram = `
  import { createLog } from ${JSON.stringify(join(import.meta.dirname, '../../../src/platform/base/log.ts'))};

  const log = createLog({ logLevel: 'info', logFormat: 'json' });
  for (let piece = 0; piece < 50; piece++) log.info('x'.repeat(100_000));
  log.info('the last line');
  setTimeout(() => process.stderr.write('idle'), 100);
  setInterval(() => {}, 1000);
`;

test('a line that comes while earlier ones are being written does not wait for a further line', async (t) => {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', idleProgram]);
  t.teardown(() => child.kill());
  await once(child.stderr, 'data');
  let read = '';
  for await (const piece of child.stdout) {
    read = read.slice(-100) + piece;
    if (read.includes('the last line')) break;
  }
  t.regex(read, /the last line/);
});

function startLogging(logFormat: string, count: number, stdout: 'pipe' | number | Writable): ChildProcess {
  const args = ['--expose-gc', '--input-type=module', '--eval', program(logFormat, count)];
  return spawn(process.execPath, args, { stdio: ['ignore', stdout, 'pipe'] });
}

for (const logFormat of ['json', 'pretty']) {
  test(`a full disk neither ends the program nor keeps it from exiting: ${logFormat}`, async (t) => {
    const full = openSync('/dev/full', 'w');
    const child = startLogging(logFormat, 200, full);
    closeSync(full);
    const [said, [code]] = await Promise.all([text(child.stderr!), once(child, 'exit')]);
    t.regex(said, /^\d+$/);
    t.is(code, 0);
  });

  test(`log lines that nobody reads do not fill the memory: ${logFormat}`, async (t) => {
    const child = startLogging(logFormat, 600, 'pipe');
    const [said, [code]] = await Promise.all([text(child.stderr!), once(child, 'exit')]);
    t.true(Number(said) < 30, `${said} MB more for 60 MB of lines`);
    t.is(code, 0);
  });

  test(`all log lines arrive if they are read, the last ones too: ${logFormat}`, async (t) => {
    // A reader of its own: this process may be busy for longer than the log waits for its reader.
    const path = join(await temporaryDirectory(t), 'lines');
    const file = openSync(path, 'w');
    const reader = spawn('cat', { stdio: ['pipe', file, 'inherit'] });
    closeSync(file);
    const child = startLogging(logFormat, 50, reader.stdin!);
    reader.stdin!.destroy();
    const [[code]] = await Promise.all([once(child, 'exit'), once(reader, 'exit')]);
    const lines = await readFile(path, 'utf8');
    t.is(lines.split('\n').filter((line) => line.includes('xxx')).length, 50);
    t.is(code, 0);
  });
}
