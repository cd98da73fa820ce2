/**
 * Reads the mail log: first what is there now, forward or backward, with the rotated files, compressed or not; then what
 * is added, through rotations and truncations, and before the file exists. Lines are whole; an unfinished line waits for
 * its end. Between the two parts no line is lost or read twice, because both end at the same position of one open file.
 *
 * It polls, which works on every file system; five polls a second cost next to nothing.
 *
 * BUGS: if the file is truncated and grows beyond its old length between two polls, the beginning of the new content is
 * not read.
 */
import type { Stats } from 'node:fs';
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

interface Current extends GrowingFile {
  inode: number;
}

export async function openLog(file: string): Promise<LogFile> {
  const current = await openCurrent(file);
  if (current) current.position = await endOfLines(current.handle, (await current.handle.stat()).size);
  return new LogFile(file, current, await rotated(file));
}

export class LogFile {
  readonly #file: string;
  /** The rotated files when the log was opened. */
  readonly #older: string[];
  /** The position in the first file at which `added` starts. */
  readonly #end: number;
  #current: Current | null;
  /** The latest rotated file whose lines have been read, or precede `#end`. */
  #newest: string;

  constructor(file: string, current: Current | null, older: string[]) {
    this.#file = file;
    this.#current = current;
    this.#older = older;
    this.#end = current?.position ?? 0;
    this.#newest = older.at(-1) ?? '';
  }

  /** The lines that were there when the log was opened, without files that were last written before `since`. */
  async *forward(since = 0): AsyncGenerator<string[]> {
    for (const path of this.#older) {
      const { mtimeMs = 0, ino } = (await statOrNull(path)) ?? {};
      // Rotated after it was opened: its lines are read from the open file.
      if (mtimeMs >= since && ino !== this.#current?.inode) yield* linesOf(path);
    }
    if (this.#current) yield* newLines(followFile(this.#current.handle, 0), this.#end);
  }

  /** The same lines if `keep` accepts them, the last portion first. A portion is in the order of the file. */
  async *backward(keep: (line: string) => boolean, since = 0): AsyncGenerator<string[]> {
    const current = this.#current;
    if (current) for await (const lines of linesBackward(current.handle, this.#end)) yield lines.filter(keep);
    for (const path of this.#older.toReversed()) {
      if (((await statOrNull(path))?.mtimeMs ?? since) < since) return;
      const portions = path.endsWith('.gz')
        ? await lastFirst(unzippedLines(path), keep)
        : withFile(path, (handle, { size, ino }) => linesBackward(handle, ino === current?.inode ? 0 : size));
      for await (const lines of portions) yield lines.filter(keep);
    }
  }

  /** The lines added since the log was opened, or since the previous call. */
  async *added(): AsyncGenerator<string[]> {
    for (;;) {
      const now = await statOrNull(this.#file);
      const current = this.#current;
      if (current && now?.ino === current.inode && now.size < current.position) restart(current);
      // Read after `stat`: if another file has the name by then, this one is complete, and is now read to its end.
      if (current) yield* newLines(current);
      if (!now || now.ino === current?.inode) return;
      yield* this.#rotatedSince();
      await current?.handle.close();
      this.#current = await openCurrent(this.#file);
    }
  }

  /** The same until `signal` aborts. */
  async *follow(signal: AbortSignal): AsyncGenerator<string[]> {
    while (!signal.aborted) {
      yield* this.added();
      await sleep(pollMs, undefined, { signal }).catch(() => {});
    }
  }

  async close(): Promise<void> {
    await this.#current?.handle.close();
  }

  /** Files that were created and rotated between two polls. */
  async *#rotatedSince(): AsyncGenerator<string[]> {
    const paths = await rotated(this.#file);
    const inodes = await Promise.all(paths.map(async (path) => (await statOrNull(path))?.ino));
    const own = this.#current ? inodes.indexOf(this.#current.inode) : -1;
    if (own >= 0) this.#newest = paths[own]!;
    // If the open file has none of these names, it is unknown which of them were read.
    const unread = this.#current && own < 0 ? [] : paths.filter((path) => path > this.#newest);
    this.#newest = paths.at(-1) ?? this.#newest;
    for (const path of unread) yield* linesOf(path);
  }
}

function statOrNull(path: string): Promise<Stats | null> {
  return stat(path).catch(() => null);
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

/** The oldest first. Their names begin with the time of rotation: 20261120-1403-01-mail.log. */
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

/** Reads a compressed file, which is only possible from its beginning. */
async function lastFirst(
  portions: AsyncGenerator<string[]>,
  keep: (line: string) => boolean,
): Promise<string[][]> {
  const kept: string[][] = [];
  for await (const lines of portions) kept.unshift(lines.filter(keep));
  return kept;
}

/** Yields nothing if the file does not exist: the oldest files are deleted. */
async function* withFile(
  path: string,
  read: (handle: FileHandle, stats: Stats) => AsyncGenerator<string[]>,
): AsyncGenerator<string[]> {
  await using handle = await open(path).catch(() => null);
  if (handle) yield* read(handle, await handle.stat());
}
