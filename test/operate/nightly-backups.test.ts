/** Nightly backups: when they are due, what is kept, what happens when there is no room, and that one can be restored. */
import { mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { createCli } from '#lab/cli.ts';
import { memoryLog, temporaryDirectory } from '#lab/evidence.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { isBackupDue } from '#operate/backup/nightly-backups.ts';
import { readLastBackup } from '#platform/database/admin/last-backup.ts';
import { nodeId } from '#platform/database/engine/node-id.ts';

const hour = 3_600_000;
const at = (time: string) => new Date(`2026-11-26T${time}`).getTime();

test('a backup is due at night, once, and at any hour after two nights without one', (t) => {
  const yesterday = at('03:30:00') - 24 * hour;
  const due = (time: string, latestAt: number, share = 0.5) => isBackupDue(at(time), latestAt, share);
  t.false(due('03:29:59', yesterday), 'not before its minute');
  t.true(due('03:30:00', yesterday));
  t.false(due('03:30:00', yesterday, 0.75), 'which others have at another time');
  t.true(due('06:29:00', yesterday), 'again after a failure');
  t.false(due('06:30:00', yesterday), 'but not by day');
  t.false(due('04:00:00', at('03:30:00')), 'once a night');
  t.true(due('12:00:00', at('11:59:00') - 48 * hour));
});

const settings = { POSTERN_BACKUPS: '2' };

/** Lets the time pass from 3:31 of the next night until something has happened; the dice of the world say 3:30. */
async function nextNight({ clock }: World, hasHappened: () => unknown): Promise<void> {
  const night = new Date(clock.now() + 24 * hour);
  night.setHours(3, 31, 0, 0);
  await clock.jump(night.getTime() - clock.now());
  // In steps of a second, because the night ends at half past six, and a slow machine needs its time.
  await clock.passUntil(hasHappened);
}

async function backupsIn(directory: string): Promise<string[]> {
  return (await readdir(directory).catch(() => [])).sort();
}

const isBackup = (name: string) => name.endsWith('Z.sqlite');

test('the last backups are kept, each complete, and the newest can be restored by one command', async (t) => {
  const world = await startWorld(t, { database: 'sqlite', settings });
  const { dataDir } = world.config;
  const directory = join(dataDir, 'backups');
  for (let night = 0; night < 3; night++) {
    const before = readLastBackup(dataDir)?.file;
    await nextNight(world, () => readLastBackup(dataDir)?.file !== before);
  }
  await until(async () => (await backupsIn(directory)).length === 4);
  const names = await backupsIn(directory);
  t.deepEqual(
    names.map((name) => name.replace(/^postern-[0-9a-f]{8}-\d{8}T\d{6}Z/, 'NAME')),
    ['NAME.sqlite', 'NAME.sqlite.secret', 'NAME.sqlite', 'NAME.sqlite.secret'],
  );
  for (const name of names) t.is((await stat(join(directory, name))).mode & 0o777, 0o600);
  const newest = join(directory, names[2]!);
  t.is(readLastBackup(dataDir)?.file, newest);
  const { cli, json } = createCli(t, { POSTERN_DATA_DIR: join(await temporaryDirectory(t), 'new') });
  t.is((await cli('restore', newest)).code, 0);
  t.is((await json('org list')).length, 1);
});

test('what a killed process has left is removed, and the files of others are not', async (t) => {
  const directory = await temporaryDirectory(t);
  const world = await startWorld(t, {
    database: 'sqlite',
    settings: { ...settings, POSTERN_BACKUP_DIR: directory },
  });
  const own = `postern-${nodeId(world.config.dataDir).slice(0, 8)}-`;
  await mkdir(join(directory, `${own}20261101T030000Z.sqlite.partial-abcdef`));
  const others = ['postern-00000000-20261101T030000Z.sqlite', 'notes.txt'];
  for (const name of others) await writeFile(join(directory, name), '');
  await nextNight(world, () => readLastBackup(world.config.dataDir));
  await until(async () => !(await backupsIn(directory)).some((name) => name.includes('partial')));
  const names = await backupsIn(directory);
  for (const name of others) t.true(names.includes(name));
});

test('without room there is no half backup, the older ones stay, and the log says what to do', async (t) => {
  const { log, text } = memoryLog();
  let free = 2 ** 40;
  const world = await startWorld(t, {
    database: 'sqlite',
    settings,
    overrides: { freeBytes: async () => free, log },
  });
  const directory = join(world.config.dataDir, 'backups');
  const count = async () => (await backupsIn(directory)).filter(isBackup).length;
  await nextNight(world, async () => (await count()) === 1);
  // Enough for mail.
  free = world.config.minFreeSpace * 1.5;
  await nextNight(world, () => text().includes('no backup of this night'));
  t.regex(text(), /backups has 150 MiB left, and a backup needs \d+ MiB; make room, lower POSTERN_BACKUPS/);
  t.is((await backupsIn(directory)).length, 2);
  free = 2 ** 40;
  await nextNight(world, async () => (await count()) === 2);
});

test('a directory that cannot be made is named with the setting', async (t) => {
  const file = join(await temporaryDirectory(t), 'file');
  await writeFile(file, '');
  const { log, text } = memoryLog();
  const world = await startWorld(t, {
    database: 'sqlite',
    settings: { ...settings, POSTERN_BACKUP_DIR: join(file, 'backups') },
    overrides: { log },
  });
  await nextNight(world, () => text().includes('no backup of this night'));
  t.regex(
    text(),
    /file\/backups cannot be made: .*set POSTERN_BACKUP_DIR to a directory that the service may write to/,
  );
});
