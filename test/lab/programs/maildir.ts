/** The messages that a receiver stored in a Maildir, and which part of each file is the message that was sent. */
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { until } from '../until.ts';

/** Waits until there are `n` messages; returns their bytes unchanged, with LF line ends. */
export async function readMaildir(maildir: string, n = 1): Promise<Buffer[]> {
  const folder = join(maildir, 'new');
  const names = async () => (existsSync(folder) ? (await readdir(folder)).sort() : []);
  await until(async () => (await names()).length >= n, { what: () => `${n} messages in ${maildir}` });
  return Promise.all((await names()).map((name) => readFile(join(folder, name))));
}

export interface Kept {
  /** The file with CRLF line ends, as on the wire. */
  raw: Buffer;
  /** The headers that the receiver added, unfolded. */
  trace: string[];
  /** Whether everything below them is the message, byte by byte. */
  sameBytes: boolean;
}

export function takeApart(file: Buffer, source: Buffer): Kept {
  const raw = Buffer.from(file.toString('latin1').replaceAll('\n', '\r\n'), 'latin1');
  const start = Math.max(raw.length - source.length, 0);
  const top = raw.subarray(0, start).toString();
  const trace = top
    .replace(/\r\n[ \t]+/g, ' ')
    .split('\r\n')
    .slice(0, -1);
  return { raw, trace, sameBytes: raw.subarray(start).equals(source) };
}
