/** The rooms of test/, and a run of AVA with one process for each: starting a process costs a second of CPU time. */
import { spawn } from 'node:child_process';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

export interface Room {
  /** The folder below test/, with dashes for slashes. */
  name: string;
  /** Relative to test/. */
  files: string[];
}

interface TestName {
  /** The room, or the file if the files of a run were named. */
  room: string;
  title: string;
}

/** As ava.config.js leaves them at the end of a run. */
export interface Counts {
  passed: number;
  failed: number;
  /** `title` is null for what is not a test: a hook, or a process that crashed or hung. */
  failures: { name: string; room: string; title: string | null }[];
  declaredTests: TestName[];
  passedTests: TestName[];
  slowest: string[];
}

export interface Outcome {
  exitCode: number;
  /** null: the run was cut short. */
  counts: Counts | null;
}

/** Folders whose files are not part of `npm test`. */
const notRooms = ['fixtures', 'slow'];

/** A folder with test files is a room; its `rows/`, which lie beside it as in src/, are part of it. */
export async function readRooms(tests: string): Promise<Room[]> {
  const files = (await testFiles(tests)).filter((file) => !notRooms.includes(file.split('/', 1)[0]!));
  const byFolder = Map.groupBy(files, (file) => dirname(file).replace(/\/rows$/, ''));
  return [...byFolder].map(([folder, files]) => ({ name: folder.replaceAll('/', '-'), files }));
}

/** A process costs more than a second of CPU time before its first test, so small rooms of one folder of test/ share one. */
export function sharingProcesses(rooms: Room[]): Room[] {
  const processOf = ({ name, files }: Room) => (files.length < minFiles ? name.split('-', 1)[0]! : name);
  return [...Map.groupBy(rooms, processOf)].map(([name, some]) => ({
    name,
    files: some.flatMap(({ files }) => files),
  }));
}

const minFiles = 5;

export async function readRoom(tests: string, name: string): Promise<Room> {
  const files = await testFiles(join(tests, name));
  return { name, files: files.map((one) => `${name}/${one}`) };
}

/** Whether an argument of the command line means the room: `queue`, `mail/queue` or, with all below it, `mail`. */
export function isMeant({ name }: Room, argument: string): boolean {
  const named = argument.replaceAll('/', '-');
  return name === named || name.startsWith(`${named}-`) || name.endsWith(`-${named}`);
}

async function testFiles(folder: string): Promise<string[]> {
  const names = await readdir(folder, { recursive: true });
  return names.filter((name) => name.endsWith('.test.ts') && !name.startsWith('.')).sort();
}

/** For a file in a process of its own. */
export function roomOf(file: string): Room {
  return { name: file.replace('.test.ts', '').replaceAll('/', '-'), files: [file] };
}

interface Surroundings {
  root: string;
  env: NodeJS.ProcessEnv;
  countsFile: string;
  interrupted: AbortSignal;
}

/** Runs AVA in a tree. */
export class Runner {
  readonly #surroundings: Surroundings;

  constructor(surroundings: Surroundings) {
    this.#surroundings = surroundings;
  }

  /** `output`: 'ignore' for a run that only finds out something. */
  async runRooms(rooms: Room[], args: string[], output: 'inherit' | 'ignore' = 'inherit'): Promise<Outcome> {
    const tests = join(this.#surroundings.root, 'test');
    // Of this run alone: another may go on in the same tree.
    const generated = join(tests, `.rooms-${process.pid}`);
    await mkdir(generated);
    try {
      for (const { name, files } of rooms) {
        const imports = ['lab/limit-concurrency.ts', 'lab/room-cost.ts', ...files].map(
          (file) => `import '../${file}';\n`,
        );
        await writeFile(join(generated, `${name}.ts`), imports.join(''));
      }
      return await this.run(args, { TEST_ROOMS: basename(generated) }, output);
    } finally {
      await rm(generated, { recursive: true, force: true });
    }
  }

  async run(
    args: string[],
    more: NodeJS.ProcessEnv = {},
    output: 'inherit' | 'ignore' = 'inherit',
  ): Promise<Outcome> {
    const { root, env, countsFile, interrupted } = this.#surroundings;
    if (interrupted.aborted) return { exitCode: 1, counts: null };
    const ava = join(root, 'node_modules/.bin/ava');
    const child = spawn(process.execPath, [ava, ...args], {
      cwd: root,
      stdio: ['inherit', output, output],
      env: { ...env, ...more, TEST_COUNTS: countsFile },
    });
    interrupted.addEventListener('abort', () => child.kill(), { once: true });
    const exitCode = await new Promise<number>((resolve, reject) => {
      child.on('error', reject);
      child.on('exit', (code) => resolve(code ?? 1));
    });
    const text = await readFile(countsFile, 'utf8').catch(() => null);
    await rm(countsFile, { force: true });
    return { exitCode, counts: text === null ? null : JSON.parse(text) };
  }
}
