/**
 * A disk of a few megabytes: ext4 in a file, mounted (which needs root). It can be filled to the last block, given back some
 * space, made to hang (fsfreeze), and made to fail, after which it is read-only, as with real disks. `repair` does what an
 * operator does then: unmount, check, mount.
 */
import { execFile } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

export interface SmallDisk {
  directory: string;
  /** Occupies `ballastMb` of the disk, or frees them. */
  load(): Promise<void>;
  unload(): Promise<void>;
  freeze(): Promise<void>;
  thaw(): Promise<void>;
  fail(): Promise<void>;
  /** No process may have a file open on the disk. */
  repair(): Promise<void>;
  remove(): Promise<void>;
}

export async function makeSmallDisk(parent: string, sizeMb: number, ballastMb: number): Promise<SmallDisk> {
  const image = join(parent, 'disk.img');
  const directory = join(parent, 'disk');
  const ballast = join(directory, 'ballast');
  await mkdir(directory);
  await run('truncate', ['-s', `${sizeMb}M`, image]);
  await run('mkfs.ext4', ['-q', '-F', '-m', '0', image]);
  const mount = () => run('mount', ['-o', 'loop,errors=remount-ro', image, directory]);
  await mount();
  return {
    directory,
    load: () => writeFile(ballast, Buffer.alloc(ballastMb * 1024 * 1024, 1), { flush: true }),
    unload: () => rm(ballast),
    async freeze() {
      await run('fsfreeze', ['-f', directory]);
    },
    async thaw() {
      await run('fsfreeze', ['-u', directory]);
    },
    async fail() {
      const { stdout } = await run('findmnt', ['-no', 'SOURCE', directory]);
      await writeFile(`/sys/fs/ext4/${basename(stdout.trim())}/trigger_fs_error`, '1');
    },
    async repair() {
      await run('umount', [directory]);
      // Exit code 1: errors were found and corrected.
      await run('e2fsck', ['-p', image]).catch((error) => {
        if (error.code !== 1) throw error;
      });
      await mount();
    },
    async remove() {
      await run('umount', [directory]);
    },
  };
}
