/**
 * The texts in a report's attachment: plain, gzip or zip, recognised by the first bytes, because names and types are often
 * wrong. The unpacked size is limited, because a small archive can expand to any size. Throws an error that says why there is
 * none.
 */
import { inflateRawSync } from 'node:zlib';
import yauzl from 'yauzl';

/** Enough for a month of a large sender's mail to one reporter. */
const largestReport = 8 * 1024 * 1024;
const maxEntries = 20;
const maxMembers = 20;
/** A gzip in a zip. */
const maxLayers = 3;

const tooLarge = `its content is larger than ${largestReport / 1024 / 1024} MiB`;

export async function unpack(bytes: Uint8Array, layers = maxLayers): Promise<string[]> {
  const content = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const isGzip = content[0] === 0x1f && content[1] === 0x8b;
  // An empty archive begins with its end.
  const isZip = /^PK(?:\x03\x04|\x05\x06)/.test(content.subarray(0, 4).toString('latin1'));
  if (!isGzip && !isZip) return content.length > largestReport ? fail(tooLarge) : [decoded(content)];
  if (layers === 0) fail('it is packed too many times');
  const texts: string[] = [];
  for (const inner of isGzip ? [gunzip(content)] : await unzip(content)) {
    texts.push(...(await unpack(inner, layers - 1)));
  }
  return texts;
}

function fail(why: string): never {
  throw new Error(why);
}

/**
 * The members up to the first bytes that begin none: some reporters append a line end or padding (RFC 1952 section 2.2 allows
 * members only), at which zlib.gunzip fails.
 */
function gunzip(content: Buffer): Buffer {
  const members: Buffer[] = [];
  let size = 0;
  let at = 0;
  while (members.length < maxMembers && content[at] === 0x1f && content[at + 1] === 0x8b) {
    const begin = endOfHeader(content, at);
    const found = inflate(content.subarray(begin), largestReport - size, members.length === 0);
    if (!found) break;
    const { data, read } = found;
    members.push(data);
    size += data.length;
    at = begin + read + 8;
  }
  return Buffer.concat(members);
}

/** Null if there is no member after the first one, only bytes that begin like one. */
function inflate(
  content: Buffer,
  maxLength: number,
  isFirst: boolean,
): { data: Buffer; read: number } | null {
  try {
    const options = { info: true, maxOutputLength: Math.max(maxLength, 1) };
    // The types do not know `info`, which the documentation does.
    const { buffer, engine } = inflateRawSync(content, options) as unknown as {
      buffer: Buffer;
      engine: { bytesWritten: number };
    };
    return { data: buffer, read: engine.bytesWritten };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ERR_BUFFER_TOO_LARGE') fail(tooLarge);
    return isFirst ? fail(`the gzip data is damaged: ${message}`) : null;
  }
}

/** RFC 1952 section 2.3. */
function endOfHeader(content: Buffer, start: number): number {
  const flags = content[start + 3] ?? 0;
  let at = start + 10;
  if (flags & 4) at += 2 + content.readUInt16LE(Math.min(at, content.length - 2));
  for (const flag of [8, 16]) if (flags & flag) at = content.indexOf(0, at) + 1 || content.length;
  return flags & 2 ? at + 2 : at;
}

/** RFC 7489 section 7.2.1.1: the archive has one file; some have a note beside it. Names are not used, so any are valid. */
async function unzip(content: Buffer): Promise<Buffer[]> {
  const archive = await yauzl
    .fromBufferPromise(withoutTail(content), { decodeStrings: false })
    .catch((error) => fail(`the zip archive is damaged: ${error.message}`));
  const files: Buffer[] = [];
  let size = 0;
  let seen = 0;
  for await (const entry of archive.eachEntry()) {
    if (++seen > maxEntries) break;
    if (entry.uncompressedSize > largestReport) fail(tooLarge);
    const chunks: Buffer[] = [];
    for await (const chunk of await archive.openReadStreamPromise(entry)) {
      // The size that the archive declares may be false.
      size += chunk.length;
      if (size > largestReport) fail(tooLarge);
      chunks.push(chunk);
    }
    if (chunks.length > 0) files.push(Buffer.concat(chunks));
  }
  return files;
}

/** Without the bytes after the archive's last record. */
function withoutTail(content: Buffer): Buffer {
  const end = content.lastIndexOf('PK\x05\x06', undefined, 'latin1');
  if (end < 0 || end + 22 > content.length) return content;
  return content.subarray(0, end + 22 + content.readUInt16LE(end + 20));
}

/** The encoding by its byte order mark, its first character, or the encoding that an XML declaration names; else UTF-8. */
function decoded(bytes: Buffer): string {
  const start = bytes.subarray(0, 200).toString('latin1');
  const named =
    /^[^<]{0,3}<\?xml\s[^>]{0,100}?\bencoding\s{0,5}=\s{0,5}["']([\w.:-]{1,40})["']/.exec(start)?.[1] ??
    'utf-8';
  if (/^(?:\xff\xfe|[<{[]\0)/.test(start)) return decodedAs('utf-16le', bytes);
  if (/^(?:\xfe\xff|\0[<{[])/.test(start)) return decodedAs('utf-16be', bytes);
  return decodedAs(/^utf-?16/i.test(named) ? 'utf-8' : named, bytes);
}

function decodedAs(encoding: string, bytes: Buffer): string {
  try {
    return new TextDecoder(encoding).decode(bytes);
  } catch {
    // If the encoding's name is not known here, the letters of ASCII are enough.
    return bytes.toString('latin1');
  }
}

const maxLineLength = 255;

/** A value of a report, which anyone may have written, as one line of limited length. */
export function oneLine(text: string): string {
  return text
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
    .slice(0, maxLineLength);
}

/**
 * Whether a text has more than `max` of these characters, which begin entries. Checked before parsing, because a parser's
 * objects take a hundred times the bytes of the entries, and 8 KB of gzip can contain three million of them.
 */
export function hasMoreThan(max: number, characters: string, text: string): boolean {
  const codes = new Uint8Array(128);
  for (const character of characters) codes[character.charCodeAt(0)] = 1;
  let count = 0;
  for (let at = 0; at < text.length && count <= max; at++) count += codes[text.charCodeAt(at)] ?? 0;
  return count > max;
}
