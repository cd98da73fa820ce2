/**
 * A directory that a server takes for the whole machine (chroot): its program, the libraries that it needs, a passwd file, and
 * nothing else. So a server with fixed paths for its users, spool and configuration can run beside an installed one without
 * touching it, and its package need not be installed. Only the network is shared.
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

/** The path of a program: in the packages' directory if it is given and has it, else on the system; or null. */
export function locate(program: string, packages: string | undefined): string | null {
  const places = packages === undefined ? [program] : [join(packages, program), program];
  return places.find((place) => existsSync(place)) ?? null;
}

/** Why servers with these programs cannot be run here; null if they can. */
export function obstacleTo(programs: string[], packages: string | undefined): string | null {
  if (process.getuid?.() !== 0)
    return 'mail servers are started by root; run this as root, in a container say';
  const missing = programs.filter((program) => !locate(program, packages));
  if (missing.length === 0) return null;
  return `not there: ${missing.join(', ')}. The header of scripts/receivers.ts says how to get it`;
}

export interface JailOptions {
  directory: string;
  /** Programs by their path in the jail, as in their package. */
  programs: string[];
  packages?: string;
  /** Users in addition to root and nobody; each is a group as well. */
  users: string[];
  /** File contents by path, owned by root and readable by all; secrets are readable by root only. */
  files: Record<string, string>;
  secrets?: Record<string, string>;
  /** Directories by path, with their owner. Others may only pass through. */
  directories: Record<string, string>;
}

export interface Jail {
  run(...command: string[]): Promise<string>;
  /** Starts a server that stays in the foreground; resolves when it listens, rejects with its output if it does not. */
  serve(command: string[], isThere: () => Promise<boolean>): Promise<Server>;
}

/** User ids of the jail, which no user of the system has. */
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
