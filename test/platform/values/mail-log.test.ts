import { mkdir, readFile, rmdir } from 'node:fs/promises';
import test from 'ava';
import { manualClock } from '#lab/clock.ts';
import { temporaryDirectory } from '#lab/evidence.ts';
import { until } from '#lab/until.ts';
import type { Log } from '#platform/base/log.ts';
import { createMailLog, mailLogFile } from '#platform/values/mail-log.ts';

const line = { emailId: 'e', orgId: 'o', recipient: 'a@there.invalid', destination: 'there.invalid' };

test('if the mail log cannot be written, the error is logged and the file is opened again', async (t) => {
  const dataDir = await temporaryDirectory(t);
  const warnings: string[] = [];
  const log = { writeLines() {}, warn: (_: object, what: string) => warnings.push(what) } as unknown as Log;
  const clock = manualClock();
  // Stands for a full disk: a directory cannot be written to either.
  await mkdir(mailLogFile(dataDir), { recursive: true });
  const mailLog = createMailLog(dataDir, clock, log);
  mailLog.write('accepted', 'first', line);
  await until(() => warnings.includes('the mail log cannot be written'));
  await rmdir(mailLogFile(dataDir));
  mailLog.write('accepted', 'second', line);
  await clock.advance('1s');
  mailLog.write('accepted', 'third', line);
  mailLog.write('accepted', 'fourth', line);
  await mailLog.close();
  const lines = (await readFile(mailLogFile(dataDir), 'utf8')).split('\n').filter((text) => text !== '');
  t.deepEqual(
    lines.map((text) => JSON.parse(text).msg).slice(-3),
    // Lines that were written before the error was noticed may be lost.
    ['accepted second', 'accepted third', 'accepted fourth'],
  );
});
