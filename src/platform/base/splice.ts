/** A range of bytes, and the bytes that replace it. */
export interface Edit {
  start: number;
  end: number;
  bytes: Buffer;
}

/** The edits are in order and do not overlap. */
export function splice(raw: Buffer, edits: Iterable<Edit>): Buffer {
  const pieces: Buffer[] = [];
  let done = 0;
  for (const { start, end, bytes } of edits) {
    pieces.push(raw.subarray(done, start), bytes);
    done = end;
  }
  return Buffer.concat([...pieces, raw.subarray(done)]);
}
