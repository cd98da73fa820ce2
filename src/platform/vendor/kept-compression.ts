/**
 * Compression contexts that are kept and used for one text after the other, without a callback or a stream. Read in Node 24.
 * `deflateRawSync` and `zstdCompressSync` create a native context for each call; V8 counts its memory as external, and answers
 * with full garbage collections. The public streams keep a context, but compress on the thread pool and end with one text. Node
 * writes to its own handles as this file does (processChunkSync).
 */
import {
  constants,
  createDeflateRaw,
  createZstdCompress,
  type ZlibOptions,
  type ZstdOptions,
} from 'node:zlib';

interface PrivateParts {
  _handle: {
    writeSync(
      flush: number,
      input: Buffer,
      inputAt: number,
      inputLength: number,
      output: Buffer,
      outputAt: number,
      outputLength: number,
    ): void;
    reset(): void;
  };
  /** After a write: the bytes of the output that are left, and those of the input. */
  _writeState: Uint32Array;
}

/** Compresses into a buffer that is kept: the result is valid until the next call. Null: it is longer than `maxOutput`. */
export type Compress = (bytes: Buffer) => Buffer | null;

export function keepDeflateRaw(options: ZlibOptions, maxOutput: number): Compress {
  return keep(createDeflateRaw(options), { end: constants.Z_FINISH, endsByReset: true, maxOutput });
}

export function keepZstd(options: ZstdOptions, maxOutput: number): Compress {
  // A frame ends by itself; a reset would load the dictionary again.
  return keep(createZstdCompress(options), { end: constants.ZSTD_e_end, endsByReset: false, maxOutput });
}

interface Terms {
  /** The flush that ends a text. */
  end: number;
  /** Whether the next text can only begin after a reset, which keeps the dictionary. */
  endsByReset: boolean;
  maxOutput: number;
}

function keep(stream: unknown, { end, endsByReset, maxOutput }: Terms): Compress {
  const { _handle: handle, _writeState: left } = stream as PrivateParts;
  // Memory of its own, because a part of Node's shared pool would keep the pool alive. One byte more tells a full buffer.
  const output = Buffer.allocUnsafeSlow(maxOutput + 1);
  return (bytes) => {
    handle.writeSync(end, bytes, 0, bytes.length, output, 0, output.length);
    const isWhole = left[0]! > 0 && left[1] === 0;
    if (endsByReset || !isWhole) handle.reset();
    return isWhole ? output.subarray(0, output.length - left[0]!) : null;
  };
}
