/**
 * The settings that `postern init` needs, in the file of the service on this machine or the one that POSTERN_ENV_FILE names.
 * Lines that are there stay as they are; those that are missing are added. If the environment has the settings, as in a
 * container, they are only checked.
 */
import { existsSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { Failure } from '#cli/failure.ts';
import { ok } from '#operate/doctor/finding.ts';
import { makeDirectory, writeAtomic } from '#platform/base/atomic-file.ts';
import { type Config, loadConfig } from '#platform/settings/config.ts';
import { parseEnvFile } from '#platform/settings/env-file.ts';
import type { Environment } from '#platform/settings/setting-sources.ts';
import type { Answers } from './answers.ts';
import type { Step } from './step.ts';

export interface GivenSettings {
  /** Null: the environment has the settings. */
  path: string | null;
  /** The file as it is; null if it does not exist yet. */
  text: string | null;
  values: Environment;
}

/** Throws a Failure if a line of the file is not right. An empty value counts as not given. */
export function readGivenSettings(path: string | null, env: Environment): GivenSettings {
  const text = path !== null && existsSync(path) ? readFileSync(path, 'utf8') : null;
  const { problems, variables } = parseEnvFile(text ?? '');
  const [problem] = problems;
  if (problem) throw new Failure(`${problem.message} (${path}, line ${problem.line})`);
  const ofFile = [...variables].map(([name, variable]) => [name, variable.text]);
  const ofEnvironment = Object.entries(env).filter(([, value]) => value?.trim());
  return { path, text, values: Object.fromEntries([...ofFile, ...ofEnvironment]) };
}

/** The answers of an earlier run. */
export function answersIn({ values }: GivenSettings): Partial<Answers> {
  const { POSTERN_HOSTNAME: hostname, POSTERN_ACME: email } = values;
  return { ...(hostname && { hostname }), ...(email && { email }) };
}

/** With certificates of its own, the server is reached by its name; a given URL is that of a proxy, which has them. */
export function missingSettings({ values, path }: GivenSettings, { hostname, email }: Answers) {
  const given = values.POSTERN_HOSTNAME;
  if (given && given !== hostname) {
    throw new Failure(
      `${path ?? 'the environment'} says POSTERN_HOSTNAME=${given}, not ${hostname}; give --hostname ${given}, or correct the setting`,
    );
  }
  const wanted = {
    POSTERN_HOSTNAME: hostname,
    ...(!values.POSTERN_BASE_URL && { POSTERN_ACME: email }),
    POSTERN_INBOUND_PORT: '25',
  };
  return Object.fromEntries(Object.entries(wanted).filter(([name]) => !values[name]));
}

/** The settings as they will be in force. */
export function configWith(
  { path, text }: GivenSettings,
  missing: Record<string, string>,
  env: Environment,
): Config {
  const file = text === null ? undefined : (path ?? undefined);
  return loadConfig({ ...env, ...missing, POSTERN_ENV_FILE: file, POSTERN_ENV_FD: undefined });
}

const head = '# Settings of Postern; docs/settings.md lists all, `postern config` prints those in force.\n';

export function settingsStep({ path, text }: GivenSettings, missing: Record<string, string>): Step {
  const lines = Object.entries(missing).map(([name, value]) => `${name}=${value}`);
  return {
    what: 'write the settings',
    plan: `${lines.join(', ')} in ${path ?? 'the environment'}`,
    needs: [],
    isDone: async () => (lines.length === 0 ? ok(`${path ?? 'the environment'} has them`) : null),
    async do() {
      if (path === null)
        throw new Failure(
          `not set: ${lines.join(', ')}; add them to the environment of the server and restart it`,
        );
      const before = text === null ? head : text.replace(/[^\n]$/, '$&\n');
      makeDirectory(dirname(path));
      writeAtomic(path, before + lines.map((line) => `${line}\n`).join(''));
      return ok(`wrote ${path}`);
    },
    cure: 'check the owner and the permissions of the file',
  };
}
