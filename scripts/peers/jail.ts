/**
 * A directory that a server takes for the whole machine (chroot): its program, the libraries that this needs, a
 * passwd of its own, and nothing else. So a server whose users, spool and configuration are at fixed places runs
 * beside one that is installed, and leaves the system's own alone; and its package need not be installed, for what
 * its installation would set up is set up here. Only the network is shared.
 *
 * A program is taken from the system, or from a directory into which packages were unpacked (`dpkg -x`).
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, chown, copyFile, mkdir, readdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { type Server, serve } from './serve.ts';

const run = promisify(execFile);

/** Where that program is: in the packages' directory, if one is given and has it, else on the system; or null. */
export function locate(program: string, packages: string | undefined): string | null {
  const places = packages === undefined ? [program] : [join(packages, program), program];
  return places.find((place) => existsSync(place)) ?? null;
}

export interface JailOptions {
  directory: string;
  /** By their places in the jail, as packages have them. */
  programs: string[];
  packages?: string;
  /** Beside root and nobody; each is a group as well. */
  users: string[];
  /** Text by place, root's and for everybody to read; a secret is for root alone. */
  files: Record<string, string>;
  secrets?: Record<string, string>;
  /** By place: the user whom it belongs to. Others may pass through, no more. */
  directories: Record<string, string>;
}

export interface Jail {
  run(...command: string[]): Promise<string>;
  /** A server that stays in the foreground, once it is there; rejects with what it says when it does not come up. */
  serve(command: string[], isThere: () => Promise<boolean>): Promise<Server>;
}

/** Users of the jail alone; nobody outside has these numbers. */
const firstUid = 64_200;

export async function makeJail(options: JailOptions): Promise<Jail> {
  const { directory, users } = options;
  const inside = (place: string) => join(directory, place);
  const uids = new Map([['root', 0], ...users.map((user, index) => [user, firstUid + index] as const)]);
  for (const program of options.programs) await copyProgram(program, options);
  const accounts = [...uids, ['nobody', 65_534] as const];
  const files: Record<string, string> = {
    '/etc/passwd': accounts.map(([name, id]) => `${name}:x:${id}:${id}::/:/bin/sh\n`).join(''),
    '/etc/group': accounts.map(([name, id]) => `${name}:x:${id}:\n`).join(''),
    '/etc/nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files\n',
    '/etc/hosts': '127.0.0.1 localhost\n',
    ...options.files,
  };
  const write = async (place: string, text: string, mode: number) => {
    await mkdir(dirname(inside(place)), { recursive: true });
    await writeFile(inside(place), text, { mode });
  };
  for (const [place, text] of Object.entries(files)) await write(place, text, 0o644);
  for (const [place, text] of Object.entries(options.secrets ?? {})) await write(place, text, 0o600);
  for (const [place, owner] of Object.entries({ '/dev': 'root', '/tmp': 'root', ...options.directories })) {
    await mkdir(inside(place), { recursive: true });
    await chown(inside(place), uids.get(owner)!, uids.get(owner)!);
    await chmod(inside(place), 0o711);
  }
  await run('mknod', ['-m', '666', inside('/dev/null'), 'c', '1', '3']);
  return {
    run: async (...command) => (await run('chroot', [directory, ...command])).stdout,
    serve: (command, isThere) => serve(['chroot', directory, ...command], isThere),
  };
}

async function copyProgram(program: string, { directory, packages }: JailOptions): Promise<void> {
  const from = locate(program, packages);
  if (!from) throw new Error(`${program} is not there`);
  await copyInto(directory, program, from);
  const env = { ...process.env, LD_LIBRARY_PATH: (await libraryFolders(packages)).join(':') };
  const { stdout } = await run('ldd', [from], { env });
  for (const [, library] of stdout.matchAll(/(\/\S+) \(0x/g)) {
    const place = packages && library!.startsWith(packages) ? library!.slice(packages.length) : library!;
    await copyInto(directory, place, library!);
  }
}

/** Debian's multiarch folders of the packages' directory. */
async function libraryFolders(packages: string | undefined): Promise<string[]> {
  if (packages === undefined) return [];
  const tops = ['lib', 'usr/lib'].map((top) => join(packages, top)).filter((top) => existsSync(top));
  const folders = await Promise.all(
    tops.map(async (top) => (await readdir(top)).map((name) => join(top, name))),
  );
  return folders.flat();
}

async function copyInto(directory: string, place: string, from: string): Promise<void> {
  await mkdir(dirname(join(directory, place)), { recursive: true });
  await copyFile(from, join(directory, place));
}
