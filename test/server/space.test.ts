import test from 'ava';
import { manualClock } from '#lab/clock.ts';
import { until } from '#lab/until.ts';
import { startDiskGuard } from '#server/disk-guard.ts';

const mb = 1024 * 1024;

function disk() {
  const said: string[] = [];
  const note = (level: string) => (what: unknown, text?: string) => said.push(`${level} ${text ?? what}`);
  const log = { error: note('error'), warn: note('warn'), info: note('info') };
  const clock = manualClock();
  const state = { free: 200 * mb, ofLog: 0, looks: 0, isInPlace: true };
  const freeBytes = async () => {
    state.looks += 1;
    if (Number.isNaN(state.free)) throw new Error('gone');
    return state.free;
  };
  const keepLogShort = async (isShort: boolean): Promise<void> => {
    said.push(isShort ? 'short log' : 'usual log');
  };
  const excessOfLog = () => state.ofLog;
  const isInPlace = () => state.isInPlace;
  const parts = {
    isInPlace,
    dataDir: '/data',
    min: 100 * mb,
    freeBytes,
    excessOfLog,
    keepLogShort,
    clock,
    log: log as never,
  };
  return { said, clock, state, parts };
}

test('mail is refused below the minimum of free space, which is logged once, and accepted again later', async (t) => {
  const { said, clock, state, parts } = disk();
  const space = await startDiskGuard(parts);
  t.true(space.hasSpace());
  state.free = 99 * mb;
  t.true(space.hasSpace(), 'no check since then');
  await clock.advance('3s');
  t.false(space.hasSpace());
  t.is(said.length, 2);
  t.regex(said[0]!, /^error \/data has .* POSTERN_MIN_FREE_SPACE .* free some disk space/);
  state.free = 100 * mb;
  await clock.advance('1s');
  t.true(space.hasSpace());
  t.regex(said[2]!, /^info .* accepted again/);
  await space.stop();
  t.deepEqual(clock.pending, []);
});

test('space that the checkpoint of the log will need counts as used', async (t) => {
  const { said, clock, state, parts } = disk();
  const space = await startDiskGuard(parts);
  state.ofLog = 101 * mb;
  await clock.advance('1s');
  t.false(space.hasSpace());
  t.regex(
    said[0]!,
    /^error \/data has 200 MiB left \(the database’s log will need 101 MiB of it, .*\), less than/,
  );
  t.is(space.freeSpace(), 200 * mb);
  state.ofLog = 0;
  await clock.advance('1s');
  t.true(space.hasSpace());
});

test('refuses mail while the database file is missing, however much space is free', async (t) => {
  const { said, clock, state, parts } = disk();
  const space = await startDiskGuard(parts);
  t.is(space.obstacle(), null);
  state.isInPlace = false;
  state.free = Number.NaN;
  await clock.advance('3s');
  t.false(space.hasSpace());
  t.regex(space.obstacle()!, /removed from the data directory/);
  t.regex(
    said[0]!,
    /^error the database’s file has been removed from \/data or replaced: .* restore a backup$/,
  );
  t.is(said.filter((line) => line.startsWith('error')).length, 1, 'logged once');
  state.isInPlace = true;
  await clock.advance('1s');
  t.true(space.hasSpace());
});

test('the log is kept short while space is short, and only a change is applied', async (t) => {
  const { said, clock, state, parts } = disk();
  const space = await startDiskGuard(parts);
  t.deepEqual(said, []);
  state.free = 150 * mb;
  await clock.advance('3s');
  t.deepEqual(said, ['short log']);
  state.free = 170 * mb;
  await clock.advance('3s');
  t.deepEqual(said, ['short log', 'usual log']);
  t.true(space.hasSpace());
});

test('if the length of the log cannot be set, it is tried again, and checks go on meanwhile', async (t) => {
  const { said, clock, state, parts } = disk();
  const space = await startDiskGuard(parts);
  const { keepLogShort } = parts;
  const busy = Promise.withResolvers<void>();
  parts.keepLogShort = () => busy.promise;
  state.free = 1;
  await clock.advance('2s');
  t.false(space.hasSpace());
  busy.reject(new Error('no connection'));
  parts.keepLogShort = keepLogShort;
  await until(() => said.at(-1)?.startsWith('warn the length of the database’s log'));
  await clock.advance('1s');
  t.is(said.at(-1), 'short log');
  await space.stop();
});

test('the last requested length of the log holds, however long an earlier request takes', async (t) => {
  const { said, clock, state, parts } = disk();
  const space = await startDiskGuard(parts);
  const { keepLogShort } = parts;
  const busy = Promise.withResolvers<void>();
  parts.keepLogShort = (isShort) => busy.promise.then(() => keepLogShort(isShort));
  state.free = 1;
  await clock.advance('1s');
  parts.keepLogShort = keepLogShort;
  state.free = 1000 * mb;
  await clock.advance('1s');
  busy.resolve();
  await space.stop();
  t.deepEqual(
    said.filter((line) => line.endsWith(' log')),
    ['short log', 'usual log'],
  );
});

test('checks at the start, then once a second however often it is asked', async (t) => {
  const { clock, state, parts } = disk();
  state.free = 1;
  const space = await startDiskGuard(parts);
  for (let asked = 0; asked < 100; asked++) t.false(space.hasSpace());
  await clock.advance('10s');
  t.is(state.looks, 11);
});

test('checks ten times a second if one second of mail could use up the spare space', async (t) => {
  const { clock, state, parts } = disk();
  state.free = 163 * mb;
  const space = await startDiskGuard(parts);
  const before = state.looks;
  await clock.advance('1s');
  t.is(state.looks, before + 10);
  state.free = 99 * mb;
  await clock.advance(100);
  t.false(space.hasSpace());
  await clock.advance('10s');
  t.is(state.looks, before + 21, 'once a second is enough for accepting again');
});

test('if the free space cannot be read, the last known value holds', async (t) => {
  const { said, clock, state, parts } = disk();
  const space = await startDiskGuard(parts);
  state.free = Number.NaN;
  await clock.advance('2s');
  t.true(space.hasSpace());
  t.deepEqual(said, ['warn the free space of /data cannot be read']);
  state.free = 1;
  await clock.advance('1s');
  t.false(space.hasSpace());
});
