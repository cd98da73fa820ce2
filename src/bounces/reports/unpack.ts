/**
 * The text of a report's attachment: plain, gzip or zip, told by its first octets, for names and types are often wrong.
 * What it would unpack to is bounded: a small archive can hold a very large nothing. Null: too large, broken, or none.
 */
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import yauzl from 'yauzl';
import type { ParsedPart } from '../parse/parsed-mail.ts';

/** A month of a large sender's mail, to one reporter; beyond it we read nothing. */
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

/** RFC 7489 section 7.2.1.1 has one file in the archive; what else is there is not looked at. */
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
      // The size that an archive declares is its own word.
      size += chunk.length;
      if (size > largestReport) return null;
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  }
  return null;
}

/**
 * Whether a text has more than `most` of these characters: those that each begin an entry. Asked before a parser makes
 * objects of the entries, which takes a hundred times their bytes: 8 KB of gzip can hold three million of them.
 */
export function hasMoreThan(max: number, characters: string, text: string): boolean {
  const codes = new Uint8Array(128);
  for (const character of characters) codes[character.charCodeAt(0)] = 1;
  let count = 0;
  for (let at = 0; at < text.length && count <= max; at++) count += codes[text.charCodeAt(at)] ?? 0;
  return count > max;
}
