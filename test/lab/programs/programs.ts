/** Programs of the system: whether they are installed, and directories that they can write to. */
import { execFile } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

export function isInstalled(program: string): boolean {
  return (process.env.PATH ?? '').split(delimiter).some((directory) => {
    try {
      accessSync(join(directory, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** Owned by a user (name or number) and accessible to all users. */
export async function makeDirectory(directory: string, owner: string): Promise<void> {
  await promisify(execFile)('install', ['-d', '-m', '0755', '-o', owner, directory]);
}
