/**
 * `postern bugreport`: what a person needs who helps with this server, in one file: versions, the settings without secrets, the
 * findings of the doctor, the status, and the last warnings of the service's log if this user may read the journal.
 */
import { execFile } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { arch, cpus, release, totalmem } from 'node:os';
import { promisify } from 'node:util';
import type { Command } from 'commander';
import type { CommandContext } from '#cli/command-context.ts';
import { Failure } from '#cli/failure.ts';
import { doctorDocument } from '#cli/render/doctor-view.ts';
import { examine } from '#operate/doctor/examine.ts';
import { readStatus, statusDocument } from '#operate/status/read-status.ts';
import { iso } from '#platform/base/clock.ts';
import { reasonOf } from '#platform/base/system-error.ts';
import { readVersion } from '#platform/base/version.ts';
import { effectiveConfig } from '#platform/settings/config.ts';

const maxLogLines = 100;

export function bugreportCommand(program: Command, context: CommandContext): void {
  program
    .command('bugreport')
    .description(
      'Write versions, settings without secrets, findings and status to one file; read it before you pass it on.',
    )
    .argument('[FILE]', 'file to write; - is standard output', '-')
    .action((file: string) => report(context, file));
}

async function report(context: CommandContext, file: string): Promise<void> {
  const { out, now, config, env, process } = context;
  if (file !== '-' && existsSync(file)) throw new Failure(`${file} already exists; give another name`);
  const read = async <T>(work: () => Promise<T>) => work().catch((error) => ({ failed: reasonOf(error) }));
  // Opened once, before both ask for it.
  const openDb = await context.db().then(
    (db) => async () => db,
    (error) => () => Promise.reject(error),
  );
  const findings = read(async () => {
    return doctorDocument(
      await examine({ config: config(), domain: null, now, openDb, surroundings: { env: process.env } }),
    );
  });
  const status = read(async () => {
    const [db, served] = [await openDb(), await context.isServed()];
    return statusDocument(await readStatus({ db, config: config(), now: now(), served }));
  });
  const document = {
    at: iso(now()),
    postern: readVersion(),
    node: globalThis.process.version,
    machine: { release: release(), arch: arch(), processors: cpus().length, memory: totalmem() },
    settings: await read(async () => effectiveConfig(env())),
    doctor: await findings,
    status: await status,
    log: await read(journal),
  };
  const text = `${JSON.stringify(document, null, 2)}\n`;
  if (file === '-' || out.json) return out.write(text);
  writeFileSync(file, text, { mode: 0o600, flag: 'wx' });
  out.print(null, {
    fields: { written: file, next: 'read it before you pass it on: it names your domains' },
  });
}

async function journal(): Promise<string[]> {
  const args = ['-u', 'postern', '-p', 'warning', '-n', String(maxLogLines), '--no-pager', '-o', 'short-iso'];
  const { stdout } = await promisify(execFile)('journalctl', args, { timeout: 10_000 });
  return stdout.split('\n').filter((line) => line !== '');
}
