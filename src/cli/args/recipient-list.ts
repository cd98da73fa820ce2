/** Reads files of addresses, in the format of accounts/suppression-csv.ts. `-` is standard input. */
import { readFile } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { type AddressList, ListFault, readAddresses } from '../../accounts/suppression-csv.ts';
import { Failure } from '../failure.ts';

export async function readAddressFile(file: string, stdin: Readable): Promise<AddressList> {
  const bytes = await (file === '-' ? buffer(stdin) : readFile(file)).catch((error) => {
    const [reason] = (error as Error).message.split(',');
    throw new Failure(`${file} cannot be read: ${reason}; give a readable file`);
  });
  return readAddresses(bytes).catch((error) => {
    if (!(error instanceof ListFault)) throw error;
    throw new Failure(`${file}: ${error.message}; nothing was imported; correct the file and try again`);
  });
}
