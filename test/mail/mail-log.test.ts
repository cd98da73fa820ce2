import { mkdir, mkdtemp, readFile, rm, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import type { Log } from '../../src/base/log.ts';
import { createMailLog, mailLogFile } from '../../src/mail/mail-log.ts';
import { manualClock } from '../helpers/clock.ts';
import { until } from '../helpers/until.ts';

const line = { emailId: 'e', orgId: 'o', recipient: 'a@there.invalid', destination: 'there.invalid' };

test('a file that could not be written is tried again, and the trouble is told', async (t) => {
  const dataDir = await mkdtemp(join(tmpdir(), 'postern-maillog-'));
  t.teardown(() => rm(dataDir, { recursive: true, force: true }));
  const told: string[] = [];
  const log = { lines() {}, warn: (_: object, what: string) => told.push(what) } as unknown as Log;
  const clock = manualClock();
  // In the place of a disk that is full: nothing can be written there either.
  await mkdir(mailLogFile(dataDir), { recursive: true });
  const mailLog = createMailLog(dataDir, clock, log);
  mailLog.write('accepted', 'first', line);
  await until(() => told.includes('the mail log cannot be written'));
  await rmdir(mailLogFile(dataDir));
  mailLog.write('accepted', 'second', line);
  await clock.advance('1s');
  mailLog.write('accepted', 'third', line);
  mailLog.write('accepted', 'fourth', line);
  await mailLog.close();
  const lines = (await readFile(mailLogFile(dataDir), 'utf8')).split('\n').filter((text) => text !== '');
  t.deepEqual(
    lines.map((text) => JSON.parse(text).msg).slice(-3),
    // What was written before the trouble was seen may be lost with it.
    ['accepted second', 'accepted third', 'accepted fourth'],
  );
});
