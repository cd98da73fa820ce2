/**
 * Where the browser's program is. The package holds it packed, and unpacks it to TMPDIR: there it would stay after the run, a
 * second run that starts meanwhile would take half of it for the whole, and on a shared machine anybody could have put another
 * program in its place. So it is unpacked once for an installation, next to the package, by a process with a TMPDIR of its own;
 * npm replaces it with the package.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const directory = fileURLToPath(new URL('../unpacked', import.meta.resolve('@sparticuz/chromium')));

const unpack = `import chromium from '@sparticuz/chromium'; await chromium.executablePath();`;

/** @returns the program's path; unpacks it (200 MB, some seconds) if that has not been done. */
export async function chromiumProgram(): Promise<string> {
  if (!existsSync(directory)) {
    const own = await mkdtemp(`${directory}-`);
    try {
      await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', unpack], {
        cwd: import.meta.dirname,
        env: { ...process.env, TMPDIR: own },
      });
      await rename(own, directory);
    } catch (error) {
      // If it is there, another run was first.
      if (!existsSync(directory)) throw error;
    } finally {
      await rm(own, { recursive: true, force: true });
    }
  }
  return join(directory, 'chromium');
}
