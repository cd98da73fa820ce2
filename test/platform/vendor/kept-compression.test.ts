/** The private parts of Node's zlib are still what src/platform/vendor/kept-compression.ts expects. */
import { randomBytes } from 'node:crypto';
import {
  constants,
  deflateRawSync,
  inflateRawSync,
  type ZlibOptions,
  zstdCompressSync,
  zstdDecompressSync,
} from 'node:zlib';
import test from 'ava';
import { checkPart } from '#lab/vendor.ts';
import { keepDeflateRaw, keepZstd } from '#platform/vendor/kept-compression.ts';

const file = 'src/platform/vendor/kept-compression.ts';
const dictionary = Buffer.from('Content-Type: text/plain; charset=utf-8\r\nSubject: '.repeat(8));
const maxOutput = 8192;
const texts = [
  Buffer.from('Subject: Hello\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nHello.\r\n'),
  Buffer.alloc(0),
  randomBytes(1000),
  Buffer.from('x'.repeat(100_000)),
  Buffer.from('Subject: Hello again\r\n\r\n'),
];

test('a kept deflate context gives the bytes of a new one, one text after the other', async (t) => {
  const options: ZlibOptions = { dictionary, level: 6, windowBits: 12, memLevel: 5 };
  await checkPart(t, "zlib's handle", file, async () => {
    const compress = keepDeflateRaw(options, maxOutput);
    return texts.every((text) => {
      const packed = compress(text)!;
      const isSame = packed.equals(deflateRawSync(text, options));
      return isSame && inflateRawSync(packed, { dictionary }).equals(text);
    });
  });
});

test('a kept zstd context gives what a new one can read, one text after the other', async (t) => {
  const options = { dictionary, params: { [constants.ZSTD_c_compressionLevel]: 1 } };
  await checkPart(t, "zlib's handle", file, async () => {
    const compress = keepZstd(options, maxOutput);
    return texts.every((text) => {
      const packed = compress(text)!;
      const isShort = packed.length <= zstdCompressSync(text, options).length + 8;
      return isShort && zstdDecompressSync(packed, { dictionary }).equals(text);
    });
  });
});

test('a text that does not fit is not cut, and the next one is whole', (t) => {
  const large = randomBytes(maxOutput + 1);
  const small = Buffer.from('Subject: small\r\n');
  const deflate = keepDeflateRaw({ dictionary }, maxOutput);
  t.is(deflate(large), null);
  t.deepEqual(inflateRawSync(deflate(small)!, { dictionary }), small);
  const zstd = keepZstd({ dictionary }, maxOutput);
  t.is(zstd(large), null);
  t.deepEqual(zstdDecompressSync(zstd(small)!, { dictionary }), small);
});
