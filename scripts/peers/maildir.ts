/** What a receiver has kept: the files of a Maildir, and what in such a file is the message that was sent. */
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { until } from '../../test/helpers/until.ts';

/** Waits until there are `n`; their bytes as they are, lines ended by LF as everywhere on Unix. */
export async function readMaildir(maildir: string, n = 1): Promise<Buffer[]> {
  const folder = join(maildir, 'new');
  const names = async () => (existsSync(folder) ? (await readdir(folder)).sort() : []);
  await until(async () => (await names()).length >= n, { what: () => `${n} messages in ${maildir}` });
  return Promise.all((await names()).map((name) => readFile(join(folder, name))));
}

export interface Kept {
  /** The file with the line ends of the wire. */
  raw: Buffer;
  /** The headers that the receiver put on top, unfolded. */
  trace: string[];
  /** Whether all below them is the message, byte by byte. */
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
