/**
 * Reads the mail log as it grows: its last lines, the rotated files included, and then whatever is added, through
 * rotations and before the file exists. Lines come whole; one that is being written waits for its end. Nothing is
 * lost between the last lines and the first that follow: both come from the same open file.
 *
 * Polls, which works on every file system; five looks a second are nothing.
 *
 * BUGS: a file that was born and rotated between two looks is not followed; 50 MB in 200 ms would do it.
 */
import { type FileHandle, open, readdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { StringDecoder } from 'node:string_decoder';
import { setTimeout as sleep } from 'node:timers/promises';

const pollMs = 200;
const chunkSize = 1 << 16;

interface Source {
  handle: FileHandle;
  inode: number;
  position: number;
  decoder: StringDecoder;
  /** The beginning of a line whose end is not there yet. */
  partial: string;
}

async function openSource(file: string): Promise<Source | null> {
  try {
    const handle = await open(file);
    const { ino: inode } = await handle.stat();
    return { handle, inode, position: 0, decoder: new StringDecoder('utf8'), partial: '' };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/** The lines from where it stopped last time to the end of the file, in portions. */
async function* newLines(source: Source): AsyncGenerator<string[]> {
  const chunk = Buffer.allocUnsafe(chunkSize);
  for (;;) {
    const { bytesRead } = await source.handle.read(chunk, 0, chunkSize, source.position);
    if (bytesRead === 0) return;
    source.position += bytesRead;
    const pieces = (source.partial + source.decoder.write(chunk.subarray(0, bytesRead))).split('\n');
    source.partial = pieces.pop()!;
    yield pieces;
  }
}

export interface Tail {
  /** The last lines that `keep` keeps, oldest first. */
  last: string[];
  /** What is added from then on, without end. */
  follow(): AsyncGenerator<string[]>;
  close(): Promise<void>;
}

export async function tail(file: string, count: number, keep: (line: string) => boolean): Promise<Tail> {
  const current = await openSource(file);
  let last = current ? await lastOf(current, count, keep) : [];
  for (const older of await rotated(file)) {
    if (last.length >= count) break;
    const source = await openSource(older);
    // Rotated since it was opened above: its lines are here already.
    if (source && source.inode !== current?.inode) last = [...(await lastOf(source, count, keep)), ...last];
    await source?.handle.close();
  }
  return {
    last: count === 0 ? [] : last.slice(-count),
    follow: () => follow(file, current, keep),
    close: async () => current?.handle.close(),
  };
}

async function lastOf(source: Source, count: number, keep: (line: string) => boolean): Promise<string[]> {
  let last: string[] = [];
  for await (const lines of newLines(source)) {
    last = last.concat(lines.filter(keep));
    if (last.length > count) last = count === 0 ? [] : last.slice(-count);
  }
  return last;
}

/** The newest first. Their names begin with the time of their rotation: 20261120-1403-01-mail.log. */
async function rotated(file: string): Promise<string[]> {
  const names = await readdir(dirname(file)).catch(() => []);
  const older = names.filter((name) => /^\d{8}-\d{4}-\d+-/.test(name) && name.endsWith(`-${basename(file)}`));
  return older
    .sort()
    .reverse()
    .map((name) => join(dirname(file), name));
}

async function* follow(
  file: string,
  current: Source | null,
  keep: (line: string) => boolean,
): AsyncGenerator<string[]> {
  for (let source = current; ; await sleep(pollMs)) {
    source ??= await openSource(file);
    if (!source) continue;
    const now = await stat(file).catch(() => null);
    if (now && now.ino === source.inode && now.size < source.position) restart(source);
    for await (const lines of newLines(source)) yield lines.filter(keep);
    if (!now || now.ino === source.inode) continue;
    // Another file has its name now, and this one has been read to its end after that was seen.
    await source.handle.close();
    source = null;
  }
}

/** The file was cut: what is in it now is new. */
function restart(source: Source): void {
  source.position = 0;
  source.partial = '';
}
