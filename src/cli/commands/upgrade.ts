/**
 * `postern upgrade FILE`: replaces the program of the service on this machine by a newer release. Everything is checked while
 * the server runs; then it is stopped, backed up, replaced, its schema upgraded, and started. If the new version is not healthy
 * within a minute, or any step fails, the old program runs again, with the database from before if its schema was changed.
 *
 * Runs as root, as config/postern-command starts it. Commands that touch data run as the service's user.
 */
import '#platform/base/net/next-address.ts';
import { execFileSync, spawnSync } from 'node:child_process';
import { closeSync, openSync, statfsSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import type { CommandContext } from '#cli/command-context.ts';
import { Failure } from '#cli/failure.ts';
import { type InstalledProgram, installedProgram } from '#cli/upgrade/installed-program.ts';
import { type Release, readRelease, requireSuccessor } from '#cli/upgrade/release-file.ts';
import { bracketed } from '#platform/base/net/tcp-listen.ts';
import { readVersion } from '#platform/base/version.ts';
import { newest } from '#platform/database/schema/migrate.ts';
import { serviceFile } from '#platform/settings/env-file.ts';

const healthyWithinMs = 60_000;
const pollMs = 500;
const maxRestarts = 3;
/** The old program, kept, and the new one, unpacked. */
const programBytes = 1_000_000_000;

export function upgradeCommand(program: Command, context: CommandContext): void {
  program
    .command('upgrade')
    .description('Upgrade the service to a newer release, and go back if it does not become healthy.')
    .argument(
      '<FILE>',
      'the .deb or .tar.gz of the release, with its SHA256SUMS and SHA256SUMS.sig beside it',
    )
    .option('--no-backup', 'do not back up the database first; with PostgreSQL, after a pg_dump of your own')
    .action((file: string, { backup }: { backup: boolean }) => upgrade(context, resolve(file), backup));
}

async function upgrade(context: CommandContext, file: string, makesBackup: boolean): Promise<void> {
  const release = await readRelease(file);
  const installed: Release = { version: readVersion(), architecture: process.arch, schema: newest };
  requireSuccessor(release, installed);
  requireService();
  if (!release.isSigned)
    context.out.warn(
      'this program has no config/release-key.pem, so the signature of the release is not checked',
    );
  const { dataDir, databaseUrl } = context.config();
  const changesSchema = release.schema !== installed.schema;
  if (databaseUrl !== null && changesSchema && makesBackup) {
    throw new Failure(
      `${release.version} changes the schema, and the database is PostgreSQL: dump it (\`pg_dump --format=custom --file=FILE "$POSTERN_DATABASE_URL"\`), then add --no-backup`,
    );
  }
  const backup =
    databaseUrl === null && makesBackup ? join(dataDir, `before-${release.version}.sqlite`) : null;
  const program = installedProgram(file);
  requireSpace('/opt', programBytes);
  if (backup) requireSpace(dataDir, 2 * statSync(join(dataDir, 'postern.sqlite')).size);
  context.out.progress('unpacking');
  try {
    program.keep();
  } catch (error) {
    throw new Failure(`the upgrade cannot be prepared: ${reasonOf(error)}; nothing was changed`);
  }
  // From here on the steps are taken to their end: a closed terminal must not leave the service stopped.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
  const stoppedAt = context.now();
  const replaced = { program: false, schema: false };
  try {
    systemctl('stop');
    context.out.progress('backing up');
    if (backup) asService('backup', '--force', backup);
    context.out.progress('installing');
    replaced.program = true;
    program.install();
    if (changesSchema) {
      replaced.schema = true;
      context.out.progress('upgrading the schema');
      asService('migrate');
    }
    context.out.progress('starting');
    await startHealthy(context);
  } catch (error) {
    const restored = replaced.schema ? backup : null;
    await goBack(context, {
      program: replaced.program ? program : null,
      restored,
      keepsDatabase: !replaced.schema,
    });
    throw new Failure(
      `${reasonOf(error)}; ${installed.version} runs again${restored ? `, with the database from before (${backup})` : ''}`,
    );
  }
  context.out.note('the way back is kept; `postern leftovers --remove` removes it');
  const downSeconds = Math.round((context.now() - stoppedAt) / 1000);
  context.out.print(
    { from: installed.version, to: release.version, backup, downSeconds },
    {
      fields: {
        'upgraded from': installed.version,
        to: release.version,
        ...(backup && { backup }),
        'seconds down': downSeconds,
      },
    },
  );
}

function requireService(): void {
  if (process.getuid?.() !== 0 || !process.env.POSTERN_ENV_FILE)
    throw new Failure(
      'only the service of a machine is upgraded like this, by the installed `postern` as root; with Docker, use the image of the release',
    );
}

/** On a full disk, going back would fail as well. */
function requireSpace(directory: string, bytes: number): void {
  const { bavail, bsize } = statfsSync(directory);
  const wanted = Math.ceil(bytes / 2 ** 20);
  if (bavail * bsize < bytes)
    throw new Failure(`${directory} needs ${wanted} MB of free space for the upgrade; make room`);
}

interface Back {
  program: InstalledProgram | null;
  restored: string | null;
  keepsDatabase: boolean;
}

async function goBack(context: CommandContext, { program, restored, keepsDatabase }: Back): Promise<void> {
  context.out.warn('the new version cannot be used; going back');
  try {
    if (!keepsDatabase && !restored)
      throw new Failure('its schema is upgraded, and this command has made no backup');
    systemctl('stop');
    program?.goBack();
    // Held mail would wait for a person. Mail that the new version sent in its minute may be sent twice.
    if (restored) asService('restore', '--force', '--no-hold', restored);
    await startHealthy(context);
  } catch (error) {
    throw new Failure(
      `going back failed, and the service may be stopped: ${reasonOf(error)}; the old program is in /opt/postern.before${restored ? `, the database in ${restored}` : ''}`,
    );
  }
}

/** The last line of a failed program's message has the reason. */
function reasonOf(error: unknown): string {
  return (error as Error).message.trim().split('\n').at(-1)!;
}

function systemctl(...args: string[]): string {
  return execFileSync('systemctl', [...args, 'postern'], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

/** Runs a command of the installed program as the service's user, who may not open the settings. */
function asService(...args: string[]): void {
  const settings = openSync(serviceFile, 'r');
  const { PATH } = process.env;
  const { status, stderr } = spawnSync(
    'runuser',
    ['-u', 'postern', '--', '/opt/postern/scripts/postern', ...args],
    {
      env: { PATH, POSTERN_ENV_FILE: serviceFile, POSTERN_ENV_FD: '3' },
      stdio: ['ignore', 'pipe', 'pipe', settings],
      encoding: 'utf8',
    },
  );
  closeSync(settings);
  if (status !== 0) throw new Failure(`\`postern ${args[0]}\` failed: ${stderr.trim().split('\n').at(-1)}`);
}

async function startHealthy({ config }: CommandContext): Promise<void> {
  const { httpHost, httpPort } = config();
  const host = ['0.0.0.0', '::'].includes(httpHost) ? '127.0.0.1' : httpHost;
  systemctl('reset-failed');
  systemctl('start', '--no-block');
  const endsAt = performance.now() + healthyWithinMs;
  while (performance.now() < endsAt) {
    await sleep(pollMs);
    const state = spawnSync('systemctl', ['is-active', 'postern'], { encoding: 'utf8' }).stdout.trim();
    // systemd starts a program that ends again and again.
    if (state === 'failed' || Number(systemctl('show', '--property=NRestarts', '--value')) >= maxRestarts)
      break;
    const isHealthy = async () => (await fetch(`http://${bracketed(host)}:${httpPort}/health/ready`)).ok;
    if (state === 'active' && (await isHealthy().catch(() => false))) return;
  }
  throw new Failure(`it did not become healthy within a minute: ${lastWords()}`);
}

/** The newest error of the program in the journal, or its last line. */
function lastWords(): string {
  const line = (...args: string[]) =>
    spawnSync(
      'journalctl',
      [
        '--unit=postern',
        '--identifier=postern',
        '--since=-2min',
        '--output=cat',
        '--lines=1',
        '--no-pager',
        ...args,
      ],
      { encoding: 'utf8' },
    ).stdout.trim();
  return line('--priority=err') || line() || 'see journalctl -u postern';
}
