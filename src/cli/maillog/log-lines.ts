/**
 * Reads a file as whole lines, in portions, forward or backward. Memory holds one chunk and one line, whatever the size of
 * the file. A line of more than a mebibyte is skipped: Postern writes none, so it is garbage left by a disk after a crash.
 */
import { createReadStream } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { createGunzip } from 'node:zlib';

const chunkSize = 1 << 18;
const maxLineLength = 1 << 20;
const newline = 0x0a;

type Split = (bytes: Buffer) => string[];

/** Returns the lines that end in `bytes`, and keeps the beginning of the next line for the following call. */
function createSplit(): Split {
  let held = Buffer.alloc(0);
  let isTooLong = false;
  return (bytes) => {
    const end = bytes.lastIndexOf(newline);
    if (end < 0) {
      isTooLong ||= held.length + bytes.length > maxLineLength;
      held = isTooLong ? Buffer.alloc(0) : Buffer.concat([held, bytes]);
      return [];
    }
    const lines = Buffer.concat([held, bytes.subarray(0, end)])
      .toString()
      .split('\n');
    if (isTooLong) lines.shift();
    isTooLong = false;
    held = Buffer.from(bytes.subarray(end + 1));
    return lines;
  };
}

/** An open file that is read as it grows. */
export interface GrowingFile {
  handle: FileHandle;
  /** The end of what has been read. */
  position: number;
  split: Split;
}

export function followFile(handle: FileHandle, position: number): GrowingFile {
  return { handle, position, split: createSplit() };
}

/** Reads from the beginning again, after the file was truncated. */
export function restart(file: GrowingFile): void {
  Object.assign(file, followFile(file.handle, 0));
}

/** Reads from `position` to the end of the file, or to `end`. */
export async function* newLines(file: GrowingFile, end = Number.POSITIVE_INFINITY): AsyncGenerator<string[]> {
  const chunk = Buffer.allocUnsafe(chunkSize);
  while (file.position < end) {
    const max = Math.min(chunkSize, end - file.position);
    const { bytesRead } = await file.handle.read(chunk, 0, max, file.position);
    if (bytesRead === 0) return;
    file.position += bytesRead;
    yield file.split(chunk.subarray(0, bytesRead));
  }
}

/** Reads from `end` back to the beginning. Within a portion, lines are in the order of the file. */
export async function* linesBackward(handle: FileHandle, end: number): AsyncGenerator<string[]> {
  /** The end of a line that begins in an earlier chunk. */
  let rest = Buffer.alloc(0);
  for (let at = end; at > 0; ) {
    const size = Math.min(chunkSize, at);
    at -= size;
    const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(size), 0, size, at);
    const bytes = Buffer.concat([buffer.subarray(0, bytesRead), rest]);
    const cut = at === 0 ? -1 : bytes.indexOf(newline);
    if (at > 0 && cut < 0) {
      rest = bytes.length > maxLineLength ? Buffer.alloc(0) : bytes;
      continue;
    }
    rest = cut < 0 ? Buffer.alloc(0) : bytes.subarray(0, cut);
    yield bytes.toString('utf8', cut + 1).split('\n');
  }
}

/** The end of the last whole line in the first `size` bytes. */
export async function endOfLines(handle: FileHandle, size: number): Promise<number> {
  const max = Math.min(maxLineLength, size);
  const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(max), 0, max, size - max);
  return size - max + buffer.subarray(0, bytesRead).lastIndexOf(newline) + 1;
}

/** Reads a compressed file as far as possible: compression may still be running. */
export async function* unzippedLines(path: string): AsyncGenerator<string[]> {
  const split = createSplit();
  const file = createReadStream(path);
  const unzip = createGunzip();
  file.on('error', (error) => unzip.destroy(error));
  try {
    for await (const bytes of file.pipe(unzip)) yield split(bytes);
  } catch (error) {
    if (!String((error as NodeJS.ErrnoException).code).startsWith('Z_')) throw error;
  } finally {
    file.destroy();
  }
}
