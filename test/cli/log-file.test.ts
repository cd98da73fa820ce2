/** The mail log as a file that grows, is rotated, compressed, cut, or not there yet. */
import { appendFile, mkdir, rename, rm, truncate, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import test, { type ExecutionContext } from 'ava';
import { type LogFile, openLog } from '#cli/maillog/log-file.ts';
import { temporaryDirectory } from '#lab/evidence.ts';

async function logDirectory(t: ExecutionContext) {
  const folder = join(await temporaryDirectory(t), 'log');
  await mkdir(folder);
  return { file: join(folder, 'mail.log'), at: (name: string) => join(folder, `${name}-mail.log`) };
}

async function opened(t: ExecutionContext, file: string): Promise<LogFile> {
  const log = await openLog(file);
  t.teardown(() => log.close());
  return log;
}

async function portions(generator: AsyncGenerator<string[]>): Promise<string[][]> {
  const found: string[][] = [];
  for await (const each of generator) found.push(each);
  return found;
}

const all = async (generator: AsyncGenerator<string[]>) => (await portions(generator)).flat();
const backward = async (log: LogFile) =>
  (await portions(log.backward((line) => line !== ''))).reverse().flat();

test('rotated and compressed files come in their order, from either end; a half line waits', async (t) => {
  const { file, at } = await logDirectory(t);
  await writeFile(`${at('20261118-0000-01')}.gz`, gzipSync('one\ntwo\n'));
  // Just being compressed: the plain one counts.
  await writeFile(at('20261119-0000-01'), 'three\n');
  await writeFile(`${at('20261119-0000-01')}.gz`, gzipSync('three\n').subarray(0, 15));
  // Broken off.
  await writeFile(`${at('20261119-0000-02')}.gz`, gzipSync(`four\n${'x'.repeat(1000)}`).subarray(0, -9));
  await writeFile(file, 'five\nsi');
  const log = await opened(t, file);
  t.deepEqual(await all(log.forward()), ['one', 'two', 'three', 'four', 'five']);
  t.deepEqual(await backward(log), ['one', 'two', 'three', 'four', 'five']);
  await appendFile(file, 'x\nseven\n');
  t.deepEqual(await all(log.added()), ['six', 'seven']);
  t.deepEqual(await all(log.added()), []);
});

test('files that end before the time that is asked for are not read', async (t) => {
  const { file, at } = await logDirectory(t);
  await writeFile(at('20261118-0000-01'), 'old\n');
  await utimes(at('20261118-0000-01'), 1000, 1000);
  await writeFile(at('20261119-0000-01'), 'newer\n');
  await writeFile(file, 'newest\n');
  const log = await opened(t, file);
  t.deepEqual(await all(log.forward(2_000_000)), ['newer', 'newest']);
  t.deepEqual(await all(log.backward(() => true, 2_000_000)), ['newest', '', 'newer', '']);
});

test('lines longer than a chunk, letters parted by one, and rubbish without an end', async (t) => {
  const { file } = await logDirectory(t);
  const long = `${'ä€😀'.repeat(40_000)}!`;
  const lines = ['a', long, ...Array.from({ length: 20_000 }, (_, number) => `€ line ${number}`), long];
  await writeFile(file, `${lines.join('\n')}\n`);
  const log = await opened(t, file);
  t.true((await all(log.forward())).join('\n') === lines.join('\n'));
  t.true((await backward(log)).join('\n') === lines.join('\n'));
  await appendFile(file, '\0'.repeat(3 << 20));
  t.deepEqual(await all(log.added()), []);
  await appendFile(file, '\nafter\n');
  t.deepEqual(await all(log.added()), ['after']);
});

test('a log is followed that is not there yet, is rotated twice between two looks, is cut, and is removed', async (t) => {
  const { file, at } = await logDirectory(t);
  await writeFile(at('20261118-0000-01'), 'before\n');
  const log = await opened(t, file);
  t.deepEqual(await all(log.added()), []);
  await writeFile(file, 'one\n');
  t.deepEqual(await all(log.added()), ['one']);
  await appendFile(file, 'two\n');
  await rename(file, at('20261120-1200-01'));
  await writeFile(file, 'three\n');
  await rename(file, at('20261120-1200-02'));
  await writeFile(file, 'four\n');
  t.deepEqual(await all(log.added()), ['two', 'three', 'four']);
  await truncate(file);
  t.deepEqual(await all(log.added()), []);
  await appendFile(file, 'f\n');
  t.deepEqual(await all(log.added()), ['f']);
  await rm(file);
  t.deepEqual(await all(log.added()), []);
  await writeFile(file, 'six\n');
  t.deepEqual(await all(log.added()), ['six']);
});

test('a log that was made and rotated before the first look at it is followed', async (t) => {
  const { file, at } = await logDirectory(t);
  await writeFile(at('20261118-0000-01'), 'before\n');
  const log = await opened(t, file);
  await writeFile(at('20261120-1200-01'), 'one\n');
  await writeFile(file, 'two\n');
  t.deepEqual(await all(log.added()), ['one', 'two']);
});
