/** Files of addresses, as accounts/suppression-csv.ts reads them. `-` is standard input. */
import { readFile } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { ListFault, readAddresses } from '../../accounts/suppression-csv.ts';
import { Failure } from '../failure.ts';

export async function readAddressFile(file: string): Promise<string[]> {
  try {
    return await readAddresses(await readBytes(file));
  } catch (error) {
    if (!(error instanceof ListFault)) throw error;
    throw new Failure(`${file}: ${error.message}; nothing was imported; correct the file and try again`);
  }
}

async function readBytes(file: string): Promise<Buffer> {
  try {
    return await (file === '-' ? buffer(process.stdin) : readFile(file));
  } catch (error) {
    const reason = (error as Error).message.split(',')[0];
    throw new Failure(`${file} cannot be read: ${reason}; give a readable file`);
  }
}
