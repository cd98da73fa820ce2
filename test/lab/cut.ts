/** Chunks of these lengths, and the rest. */
export function cut(bytes: Buffer, lengths: number[]): Buffer[] {
  let rest = bytes;
  const chunks = lengths.map((length) => {
    const chunk = rest.subarray(0, length);
    rest = rest.subarray(length);
    return chunk;
  });
  return [...chunks, rest];
}
