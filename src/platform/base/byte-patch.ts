/**
 * Binary patches by position, for copies of a message that differ from a base in few bytes. `patched` returns the exact
 * copy, given the base that `patchOf` was given.
 *
 *   patch: length of the copy, then pairs of  number of bytes taken from the base | number of bytes that follow, bytes
 *
 * Numbers are unsigned LEB128. A patch is small if base and copy have most bytes at the same positions; for any other
 * pair it is correct, but large.
 */

/** Fewer equal bytes than this between two differences are not worth a pair of their own. */
const minCommonRun = 4;

/** Blocks are compared by memcmp; only a block that differs is compared byte by byte. */
const blockLength = 4096;

export function patchOf(base: Buffer, copy: Buffer): Buffer {
  const pieces: Buffer[] = [encoded(copy.length)];
  let done = 0;
  for (let start = nextDifference(base, copy, 0); start < copy.length; ) {
    const end = endOfDifference(base, copy, start);
    pieces.push(encoded(start - done), encoded(end - start), copy.subarray(start, end));
    done = end;
    start = nextDifference(base, copy, end);
  }
  if (done < copy.length) pieces.push(encoded(copy.length - done), encoded(0));
  return Buffer.concat(pieces);
}

/** Throws if the patch was not made for this base. */
export function patched(base: Buffer, patch: Buffer): Buffer {
  let at = 0;
  const next = () => {
    const [value, end] = decoded(patch, at);
    at = end;
    return value;
  };
  const length = next();
  const copy = Buffer.allocUnsafe(length);
  let done = 0;
  while (at < patch.length) {
    const same = next();
    done += base.copy(copy, done, done, done + same);
    const own = next();
    done += patch.copy(copy, done, at, at + own);
    at += own;
  }
  if (done !== length) throw new Error(`a patch for ${length} bytes gave ${done}`);
  return copy;
}

/** The length of the copy that a patch makes. */
export function patchedLength(patch: Buffer): number {
  return decoded(patch, 0)[0];
}

/** The first position from `from` on at which copy and base differ; the copy's length if there is none. */
function nextDifference(base: Buffer, copy: Buffer, from: number): number {
  const common = Math.min(base.length, copy.length);
  let at = from;
  while (at < common) {
    const end = Math.min(at + blockLength, common);
    if (base.compare(copy, at, end, at, end) !== 0) break;
    at = end;
  }
  while (at < common && base[at] === copy[at]) at++;
  return at;
}

function endOfDifference(base: Buffer, copy: Buffer, from: number): number {
  let end = from;
  for (let at = from; at < copy.length && at - end < minCommonRun; at++) {
    if (base[at] !== copy[at]) end = at + 1;
  }
  return end;
}

function encoded(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80);
  return Buffer.from([...bytes, rest]);
}

function decoded(bytes: Buffer, from: number): [value: number, end: number] {
  let value = 0;
  for (let at = from, shift = 0; at < bytes.length && shift < 32; at++, shift += 7) {
    const byte = bytes[at]!;
    value += (byte & 0x7f) * 2 ** shift;
    if (byte < 0x80) return [value, at + 1];
  }
  throw new Error('a patch ends within a number');
}
