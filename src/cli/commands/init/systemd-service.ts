/**
 * The systemd service: its user, its unit, the command in the PATH; installed from config/ if the package has not done that.
 * Only root can do this. The later steps work on the data of the service, so the process becomes its user then.
 */
import { execFile } from 'node:child_process';
import { copyFileSync, existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Failure } from '#cli/failure.ts';
import { ok } from '#operate/doctor/finding.ts';
import { serviceFile } from '#platform/settings/env-file.ts';
import type { Step } from './step.ts';

const user = 'postern';
const root = join(import.meta.dirname, '../../../..');
/** The unit and the command name this directory. */
const programDirectory = '/opt/postern';
const commands = ['/usr/local/bin/postern', '/usr/bin/postern'];
const timeoutMs = 120_000;

const run = promisify(execFile);

async function succeeds(command: string, ...args: string[]): Promise<boolean> {
  return run(command, args, { timeout: timeoutMs }).then(
    () => true,
    () => false,
  );
}

const parts = {
  user: () => succeeds('id', '-u', user),
  unit: () => succeeds('systemctl', 'cat', 'postern.service'),
  command: async () => commands.some((path) => existsSync(path)),
};

async function missingParts(): Promise<(keyof typeof parts)[]> {
  const names = Object.keys(parts) as (keyof typeof parts)[];
  const are = await Promise.all(names.map((name) => parts[name]()));
  return names.filter((_, at) => !are[at]);
}

export function installStep(): Step {
  return {
    what: 'install the service',
    needs: [],
    isDone: async () => ((await missingParts()).length === 0 ? ok('user, unit and command are there') : null),
    async do() {
      const missing = await missingParts();
      if (root !== programDirectory)
        throw new Failure(`the program is in ${root}; move it to ${programDirectory}, which the unit names`);
      if (missing.includes('user'))
        await run('useradd', [
          '--system',
          '--home-dir',
          '/var/lib/postern',
          '--shell',
          '/usr/sbin/nologin',
          user,
        ]);
      if (missing.includes('unit')) {
        copyFileSync(join(root, 'config/postern.service'), '/etc/systemd/system/postern.service');
        await run('systemctl', ['daemon-reload'], { timeout: timeoutMs });
      }
      if (missing.includes('command'))
        await run('install', ['-m', '0755', join(root, 'config/postern-command'), commands[0]!]);
      return ok(`installed ${missing.join(', ')}`);
    },
    cure: 'run this command as root',
  };
}

export async function isServiceActive(): Promise<boolean> {
  return succeeds('systemctl', 'is-active', '--quiet', 'postern.service');
}

/** Whether the settings were written after the start of the service, perhaps by a run that was stopped then. */
async function isStale(): Promise<boolean> {
  const show = ['show', '--timestamp=unix', '--property=ActiveEnterTimestamp', '--value', 'postern.service'];
  const { stdout } = await run('systemctl', show, { timeout: timeoutMs });
  return Math.floor(statSync(serviceFile).mtimeMs / 1000) > Number(stdout.trim().replace('@', ''));
}

export function startServiceStep(needs: Step[]): Step {
  return {
    what: 'start the service, now and at each boot',
    needs,
    async isDone() {
      const isEnabled = await succeeds('systemctl', 'is-enabled', '--quiet', 'postern.service');
      return isEnabled && (await isServiceActive()) && !(await isStale()) ? ok('it runs') : null;
    },
    async do() {
      const isStarted =
        (await succeeds('systemctl', 'enable', '--quiet', 'postern.service')) &&
        (await succeeds('systemctl', 'restart', 'postern.service'));
      if (isStarted) return ok('started');
      throw new Failure('systemd could not start it');
    },
    cure: '`journalctl -u postern -n 20` says why',
  };
}

export async function restartService(): Promise<void> {
  if (!(await succeeds('systemctl', 'restart', 'postern.service')))
    throw new Failure('systemd could not restart the service; `journalctl -u postern -n 20` says why');
}

/**
 * Files that root wrote among the data of the service could not be opened by it. Returns the way back, because root alone may
 * write the settings and restart the service.
 */
export function becomeServiceUser(): () => void {
  const groups = process.getgroups!();
  process.setgroups!([user]);
  process.setegid!(user);
  process.seteuid!(user);
  return () => {
    process.seteuid!(0);
    process.setegid!(0);
    process.setgroups!(groups);
  };
}
