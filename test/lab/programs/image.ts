/**
 * Builds an image without a container engine. Each stage is a Debian created by debootstrap, with what the official Node image
 * adds (Node, npm, its headers, the user `node`), in which bubblewrap runs the steps in order. Root does what an engine does
 * as root; a RUN runs as the USER of that moment. A RUN can use this machine's access to the npm registry, which does not
 * become part of the image.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, readFile, realpath, symlink } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { inContext, readEnv, readStages, type Step } from './dockerfile.ts';

export interface Image {
  root: string;
  env: Record<string, string>;
  user: string;
  workdir: string;
  volume: string;
  stopSignal: string;
  healthcheck: Step;
  command: string[];
  /** Size in MB of what the steps added, without Debian and Node. */
  addedMb: number;
}

const defaultPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const compilers = ['python3', 'make', 'g++'];

export async function buildImage(
  context: string,
  directory: string,
  say: (line: string) => void,
): Promise<Image> {
  const given = await contextOf(context, join(directory, 'context'));
  const roots = new Map<string, string>();
  let image: Image | undefined;
  for (const stage of readStages(await readFile(join(context, 'Dockerfile'), 'utf8'))) {
    say(`FROM ${stage.image}`);
    const root = join(directory, `stage-${roots.size}`);
    await layBase(stage.image, root);
    const emptyMb = await sizeMb(root);
    roots.set(stage.name ?? stage.image, root);
    image = {
      root,
      env: { PATH: defaultPath },
      user: 'root',
      workdir: '/',
      volume: '',
      stopSignal: 'SIGTERM',
      healthcheck: { instruction: '', flags: {}, rest: '' },
      command: [],
      addedMb: 0,
    };
    for (const step of stage.steps) {
      say(
        `${step.instruction} ${[step.rest].flat().join(' ')}${image.user === 'root' ? '' : `   (as ${image.user})`}`,
      );
      await take(step, image, (name) => (name === undefined ? given : roots.get(name)!));
    }
    image.addedMb = (await sizeMb(root)) - emptyMb;
  }
  if (!image) throw new Error('the Dockerfile has no FROM');
  return image;
}

/** The build context. */
async function contextOf(source: string, target: string): Promise<string> {
  const goes = inContext(await readFile(join(source, '.dockerignore'), 'utf8'));
  await cp(source, target, {
    recursive: true,
    filter: (path) => path === source || goes(relative(source, path)),
  });
  return target;
}

async function take(step: Step, image: Image, from: (stage?: string) => string): Promise<void> {
  const rest = String(step.rest);
  if (step.instruction === 'ENV') Object.assign(image.env, readEnv(rest, image.env));
  else if (step.instruction === 'USER') image.user = rest;
  else if (step.instruction === 'STOPSIGNAL') image.stopSignal = rest;
  else if (step.instruction === 'VOLUME') image.volume = rest;
  else if (step.instruction === 'CMD') image.command = step.rest as string[];
  else if (step.instruction === 'HEALTHCHECK') image.healthcheck = step;
  else if (step.instruction === 'WORKDIR') {
    image.workdir = rest;
    await mkdir(join(image.root, rest), { recursive: true });
  } else if (step.instruction === 'COPY') await copy(rest, step.flags, image, from);
  else if (step.instruction === 'RUN') await within(image, ['sh', '-c', rest]);
}

/** Copies as COPY does: owned by root unless --chown is given; for a directory, its content. */
async function copy(rest: string, flags: Step['flags'], image: Image, from: (stage?: string) => string) {
  const words = rest.split(/\s+/);
  const base = from(flags.from);
  const target = join(image.root, image.workdir, words.at(-1)!);
  for (const word of words.slice(0, -1)) {
    const source = join(base, word);
    const isInto = words.at(-1)!.endsWith('/');
    const place = isInto ? join(target, word.split('/').at(-1)!) : target;
    await mkdir(dirname(place), { recursive: true });
    await execute('cp', ['-a', '--no-preserve=ownership', '-T', source, place]);
    if (flags.chown)
      await execute('chroot', [image.root, 'chown', '-R', flags.chown, place.slice(image.root.length)]);
  }
}

/** Runs a command of the image with bubblewrap, as the image's user, and waits for its end. */
async function within(image: Image, command: string[]): Promise<void> {
  await execute('bwrap', [
    ...['--bind', image.root, '/', '--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp', '--unshare-pid'],
    ...['--cap-add', 'ALL', ...asUser(image, lent()), ...command],
  ]);
}

/** bubblewrap arguments for the environment, directory and user of a command in the image, and additional ones. */
export function asUser({ env, user, workdir }: Image, besides: string[] = []): string[] {
  const settings = Object.entries({ HOME: user === 'root' ? '/root' : `/home/${user}`, ...env });
  return [
    ...['--clearenv', ...settings.flatMap(([name, value]) => ['--setenv', name, value]), ...besides],
    ...['--chdir', workdir, '--', 'setpriv', `--reuid=${user}`, `--regid=${user}`, '--init-groups'],
    ...['--no-new-privs', '--'],
  ];
}

/** This machine's DNS configuration, certificate authorities and npm settings. */
function lent(): string[] {
  const npmrc = join(homedir(), '.npmrc');
  const files = [
    ['/etc/resolv.conf', '/etc/resolv.conf'],
    ['/etc/ssl/certs/ca-certificates.crt', '/etc/ssl/certs/ca-certificates.crt'],
    [npmrc, '/tmp/npmrc'],
  ];
  const variables = ['http_proxy', 'https_proxy', 'no_proxy'].filter((name) => process.env[name]);
  return [
    ...files.flatMap(([here, there]) => ['--ro-bind-try', here!, there!]),
    ...['--setenv', 'npm_config_userconfig', '/tmp/npmrc'],
    ...['--setenv', 'npm_config_cafile', '/etc/ssl/certs/ca-certificates.crt'],
    ...variables.flatMap((name) => ['--setenv', name, process.env[name]!]),
  ];
}

/** Creates the parts of the official image of that name that the steps need. */
async function layBase(image: string, root: string): Promise<void> {
  const [, suite, slim] = /^node:24-(\w+?)(-slim)?$/.exec(image) ?? [];
  if (!suite) throw new Error(`${image} is not known here; teach it to test/lab/programs/image.ts`);
  const packages = ['ca-certificates', ...(slim ? [] : compilers)].join(',');
  await execute('debootstrap', ['--variant=minbase', `--include=${packages}`, suite, root]);
  await execute('chroot', [
    root,
    'useradd',
    '--create-home',
    '--uid',
    '1000',
    '--shell',
    '/bin/bash',
    'node',
  ]);
  const local = join(root, 'usr/local');
  await cp(process.execPath, join(local, 'bin/node'));
  if (slim) return;
  const npm = dirname(dirname(await realpath(join(dirname(await which('npm')), 'npm'))));
  await cp(npm, join(local, 'lib/node_modules/npm'), { recursive: true });
  await symlink('../lib/node_modules/npm/bin/npm-cli.js', join(local, 'bin/npm'));
  const headers = join(dirname(dirname(await which('npm'))), 'include/node');
  await cp(headers, join(local, 'include/node'), { recursive: true });
}

async function which(program: string): Promise<string> {
  // The system's Node, not the one that npm scripts put first on the PATH.
  return (await execute('sh', ['-c', `PATH=/usr/local/bin:/usr/bin:/bin command -v ${program}`])).trim();
}

async function sizeMb(directory: string): Promise<number> {
  return Number.parseInt(await execute('du', ['-sm', '--one-file-system', directory]), 10);
}

/** Rejects with the end of the output. */
export async function execute(program: string, args: string[]): Promise<string> {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  let answer = '';
  child.stdout.on('data', (chunk) => {
    answer += chunk;
    said = `${said}${chunk}`.slice(-4000);
  });
  child.stderr.on('data', (chunk) => {
    said = `${said}${chunk}`.slice(-4000);
  });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`${program} ${args.slice(-1)} ended with ${code}:\n${said.trim()}`);
  return answer;
}
