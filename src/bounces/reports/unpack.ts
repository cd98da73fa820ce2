/**
 * Returns the text of a report's attachment: plain, gzip or zip, recognised by its first octets, because names and types are
 * often wrong. The unpacked size is limited, because a small archive can expand to any size. Null if it is too large, damaged
 * or not a report.
 */
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import yauzl from 'yauzl';
import type { ParsedPart } from '../parse/parsed-mail.ts';

/** Enough for a month of a large sender's mail to one reporter. */
const largestReport = 8 * 1024 * 1024;

const maxEntries = 20;

export async function unpack({ bytes }: ParsedPart): Promise<string | null> {
  const content = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const plain = await unpacked(content).catch(() => null);
  if (!plain || plain.length > largestReport) return null;
  const text = plain.toString('utf8').replace(/^\ufeff/, '');
  return /^\s*[<{]/.test(text) ? text : null;
}

async function unpacked(content: Buffer): Promise<Buffer | null> {
  if (content[0] === 0x1f && content[1] === 0x8b) {
    return promisify(gunzip)(content, { maxOutputLength: largestReport });
  }
  return content.subarray(0, 4).toString('latin1') === 'PK\x03\x04' ? unzipFirst(content) : content;
}

/** RFC 7489 section 7.2.1.1: the archive has one file. Any others are ignored. */
async function unzipFirst(content: Buffer): Promise<Buffer | null> {
  const archive = await yauzl.fromBufferPromise(content);
  let seen = 0;
  for await (const entry of archive.eachEntry()) {
    if (++seen > maxEntries) return null;
    if (entry.fileName.endsWith('/')) continue;
    if (entry.uncompressedSize > largestReport) return null;
    const chunks: Buffer[] = [];
    let size = 0;
    for await (const chunk of await archive.openReadStreamPromise(entry)) {
      // The size that the archive declares may be false.
      size += chunk.length;
      if (size > largestReport) return null;
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  }
  return null;
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
