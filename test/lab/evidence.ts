/**
 * A directory for one test. It is removed after the test; after a failure it stays and its path is printed, with what
 * the test's parts can still say: the server's log, the rows of the database, the SMTP transcripts.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import type { ExecutionContext } from 'ava';
import pino from 'pino';
import type { Log } from '#platform/base/log.ts';
import type { Db } from '#platform/database/engine/open.ts';

/** scripts/test.ts sets TEST_DIRECTORY, and prints at the end which directories are left. */
const parent = process.env.TEST_DIRECTORY ?? tmpdir();

/** Has the title of the test whose evidence a directory is. */
export const titleFile = 'title-of-the-test.txt';

export async function temporaryDirectory(t: ExecutionContext, name = 'postern'): Promise<string> {
  const path = await mkdtemp(join(parent, `${name}-`));
  t.teardown(async () => {
    // Undefined in the hooks of a file, which hand over a part of a context.
    if (t.passed ?? true) await rm(path, { recursive: true, force: true });
    else {
      await writeFile(join(path, titleFile), t.title);
      process.stderr.write(`evidence of "${t.title}": ${path}\n`);
    }
  });
  return path;
}

/** Writes a file into the directory if the test has failed. Call it after starting what `content` reads, so that it still runs. */
export function keepOnFailure(
  t: ExecutionContext,
  directory: string,
  name: string,
  content: () => unknown,
): void {
  t.teardown(async () => {
    if (t.passed ?? true) return;
    const value = await Promise.resolve()
      .then(content)
      .catch((error) => error);
    const text = typeof value === 'string' ? value : inspect(value, { depth: 8, maxStringLength: 20_000 });
    await writeFile(join(directory, name), text);
  });
}

const maxLogLines = 20_000;

/** A log in memory, for a server that is to say nothing unless its test fails. */
export function memoryLog(): { log: Log; text: () => string } {
  const lines: string[] = [];
  const write = (line: string) => {
    if (lines.length < maxLogLines) lines.push(line);
  };
  const log = pino({ base: null, timestamp: pino.stdTimeFunctions.isoTime }, { write });
  return { log: Object.assign(log, { writeLines: write }), text: () => lines.join('') };
}

const tables = ['organizations', 'emails', 'deliveries', 'attempts', 'events', 'suppressions', 'nodes'];

/** The newest rows of the tables that tell what became of a mail. */
export async function rowsOf(db: Db): Promise<string> {
  const rows = tables.map(
    async (table) => `${table}\n${inspect(await db(table).limit(200), { maxArrayLength: 200 })}\n`,
  );
  return (await Promise.all(rows)).join('\n');
}
