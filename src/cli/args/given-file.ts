/** A file that the command line names; `-` is standard input. */
import { readFile } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { Failure } from '#cli/failure.ts';

export async function readGiven(file: string, stdin: Readable): Promise<Buffer> {
  return (file === '-' ? buffer(stdin) : readFile(file)).catch((error) => {
    const [reason] = (error as Error).message.split(',');
    throw new Failure(`${file} cannot be read: ${reason}; give a readable file`);
  });
}
