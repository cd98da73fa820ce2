/**
 * The mail log as it is read: what is in it now, from the beginning or from the end, the rotated files included
 * (compressed ones too); and then whatever is added, through rotations, truncations, and before the file exists. Lines
 * come whole; one that is being written waits for its end. Between what is in it and what is added nothing is lost and
 * nothing comes twice: both are parted at one place of one open file.
 *
 * Polls, which works on every file system; five looks a second are nothing.
 *
 * BUGS: a file that was cut and has grown beyond its old length between two looks is taken for one that grew.
 */
import { type FileHandle, open, readdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  endOfLines,
  followFile,
  type GrowingFile,
  linesBackward,
  newLines,
  restart,
  unzippedLines,
} from './log-lines.ts';

const pollMs = 200;

export interface LogFile {
  /** All that was there when it was opened, in portions; files that were done with before `since` are left out. */
  forward(since?: number): AsyncGenerator<string[]>;
  /** Of the same what `keep` keeps, the last portion first; within a portion the lines are in their order. */
  backward(keep: (line: string) => boolean, since?: number): AsyncGenerator<string[]>;
  /** What was added since it was opened, or since the last time. */
  added(): AsyncGenerator<string[]>;
  /** The same without end. */
  follow(): AsyncGenerator<string[]>;
  close(): Promise<void>;
}

interface Current extends GrowingFile {
  inode: number;
}

export async function openLog(file: string): Promise<LogFile> {
  let current = await openCurrent(file);
  const end = current ? await endOfLines(current.handle, (await current.handle.stat()).size) : 0;
  if (current) current.position = end;
  const older = await rotated(file);
  let newest = older.at(-1) ?? '';

  async function* forward(since = 0): AsyncGenerator<string[]> {
    for (const path of older) {
      const { mtimeMs = 0, ino } = (await stat(path).catch(() => null)) ?? {};
      // Rotated since it was opened above: its lines come from there.
      if (mtimeMs >= since && ino !== current?.inode) yield* linesOf(path);
    }
    if (current) yield* newLines(followFile(current.handle, 0), end);
  }

  async function* backward(keep: (line: string) => boolean, since = 0): AsyncGenerator<string[]> {
    if (current) for await (const lines of linesBackward(current.handle, end)) yield lines.filter(keep);
    for (const path of older.toReversed()) {
      if (((await stat(path).catch(() => null))?.mtimeMs ?? since) < since) return;
      const portions = path.endsWith('.gz')
        ? await lastFirst(unzippedLines(path), keep)
        : withFile(path, (handle, { size, ino }) => linesBackward(handle, ino === current?.inode ? 0 : size));
      for await (const lines of portions) yield lines.filter(keep);
    }
  }

  async function* added(): AsyncGenerator<string[]> {
    for (;;) {
      const now = await stat(file).catch(() => null);
      if (current && now?.ino === current.inode && now.size < current.position) restart(current);
      if (current) yield* newLines(current);
      // Where another file has its name now, this one has been read to its end after that was seen.
      if (!now || now.ino === current?.inode) return;
      yield* missed();
      await current?.handle.close();
      current = await openCurrent(file);
    }
  }

  /** Files that were born and rotated between two looks. */
  async function* missed(): AsyncGenerator<string[]> {
    const paths = await rotated(file);
    const inodes = await Promise.all(paths.map(async (path) => (await stat(path).catch(() => null))?.ino));
    const own = current ? inodes.indexOf(current.inode) : -1;
    if (own >= 0) newest = paths[own]!;
    // One that has gone by another name: what was there is not known.
    const unread = current && own < 0 ? [] : paths.filter((path) => path > newest);
    newest = paths.at(-1) ?? newest;
    for (const path of unread) yield* linesOf(path);
  }

  async function* follow(): AsyncGenerator<string[]> {
    for (;;) {
      yield* added();
      await sleep(pollMs);
    }
  }

  return { forward, backward, added, follow, close: async () => current?.handle.close() };
}

async function openCurrent(file: string): Promise<Current | null> {
  try {
    const handle = await open(file);
    const { ino: inode } = await handle.stat();
    return { ...followFile(handle, 0), inode };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/** The oldest first. Their names begin with the time of their rotation: 20261120-1403-01-mail.log. */
async function rotated(file: string): Promise<string[]> {
  const all = await readdir(dirname(file)).catch(() => []);
  const names = all.filter((name) => /^\d{8}-\d{4}-\d+-/.test(name));
  const isOurs = (name: string) =>
    name.endsWith(`-${basename(file)}`) ||
    (name.endsWith(`-${basename(file)}.gz`) && !names.includes(name.slice(0, -'.gz'.length)));
  return names
    .filter(isOurs)
    .sort()
    .map((name) => join(dirname(file), name));
}

async function* linesOf(path: string): AsyncGenerator<string[]> {
  if (path.endsWith('.gz')) yield* unzippedLines(path);
  else yield* withFile(path, (handle, { size }) => newLines(followFile(handle, 0), size));
}

/** What cannot be read from its end. */
async function lastFirst(
  portions: AsyncGenerator<string[]>,
  keep: (line: string) => boolean,
): Promise<string[][]> {
  const kept: string[][] = [];
  for await (const lines of portions) kept.unshift(lines.filter(keep));
  return kept;
}

/** Nothing where it is gone: the oldest are removed. */
async function* withFile(
  path: string,
  read: (handle: FileHandle, is: { size: number; ino: number }) => AsyncGenerator<string[]>,
): AsyncGenerator<string[]> {
  const handle = await open(path).catch(() => null);
  if (!handle) return;
  try {
    yield* read(handle, await handle.stat());
  } finally {
    await handle.close();
  }
}
