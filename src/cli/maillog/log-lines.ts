/**
 * Whole lines out of bytes, in portions, from the front or from the end: whatever the size of the file, memory holds
 * one chunk and one line. A line of more than a mebibyte is none of ours (a disk's rubbish after a crash) and left out.
 */
import { createReadStream } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { createGunzip } from 'node:zlib';

const chunkSize = 1 << 18;
const longestLine = 1 << 20;
const newline = 0x0a;

type Split = (bytes: Buffer) => string[];

/** Takes bytes as they come; gives the lines that have their end, and keeps the beginning of the next. */
function createSplit(): Split {
  let held = Buffer.alloc(0);
  let isTooLong = false;
  return (bytes) => {
    const end = bytes.lastIndexOf(newline);
    if (end < 0) {
      isTooLong ||= held.length + bytes.length > longestLine;
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

/** An open file that is read on as it grows. */
export interface GrowingFile {
  handle: FileHandle;
  /** Read up to here. */
  position: number;
  split: Split;
}

export function followFile(handle: FileHandle, position: number): GrowingFile {
  return { handle, position, split: createSplit() };
}

/** The file was cut: what is in it now is new. */
export function restart(file: GrowingFile): void {
  Object.assign(file, followFile(file.handle, 0));
}

/** From where it stopped last time to the end of the file, or to `end`. */
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

/** From `end` back to the beginning; the lines of a portion are in the file's order. */
export async function* linesBackward(handle: FileHandle, end: number): AsyncGenerator<string[]> {
  /** The rest of a line that begins further up. */
  let rest = Buffer.alloc(0);
  for (let at = end; at > 0; ) {
    const size = Math.min(chunkSize, at);
    at -= size;
    const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(size), 0, size, at);
    const bytes = Buffer.concat([buffer.subarray(0, bytesRead), rest]);
    const cut = at === 0 ? -1 : bytes.indexOf(newline);
    if (at > 0 && cut < 0) {
      rest = bytes.length > longestLine ? Buffer.alloc(0) : bytes;
      continue;
    }
    rest = cut < 0 ? Buffer.alloc(0) : bytes.subarray(0, cut);
    yield bytes.toString('utf8', cut + 1).split('\n');
  }
}

/** Where the last whole line of the first `size` bytes ends. */
export async function endOfLines(handle: FileHandle, size: number): Promise<number> {
  const max = Math.min(longestLine, size);
  const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(max), 0, max, size - max);
  return size - max + buffer.subarray(0, bytesRead).lastIndexOf(newline) + 1;
}

/** Of a compressed file, as far as it can be read: it may be under way to become one. */
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
