/**
 * The settings that `postern init` needs, in the file of the service on this machine or the one that POSTERN_ENV_FILE names.
 * Lines that are there stay as they are, but for the name of the server as long as nothing was sent; those that are missing are
 * added. If the environment has the settings, as in a container, they are only checked.
 */
import { existsSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { Failure } from '#cli/failure.ts';
import { ok, warning } from '#operate/doctor/finding.ts';
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
  /** Names of the settings that the file alone decides. */
  ofFile: ReadonlySet<string>;
}

/** Throws a Failure if a line of the file is not right. An empty value counts as not given. */
export function readGivenSettings(path: string | null, env: Environment): GivenSettings {
  const text = path !== null && existsSync(path) ? readFileSync(path, 'utf8') : null;
  const { problems, variables } = parseEnvFile(text ?? '');
  const [problem] = problems;
  if (problem) throw new Failure(`${problem.message} (${path}, line ${problem.line})`);
  const inFile = [...variables].map(([name, variable]) => [name, variable.text] as const);
  const inEnvironment = Object.entries(env).filter(([, value]) => value?.trim());
  return {
    path,
    text,
    values: Object.fromEntries([...inFile, ...inEnvironment]),
    ofFile: new Set([...variables.keys()].filter((name) => !env[name]?.trim())),
  };
}

/** The answers of an earlier run. */
export function answersIn({ values }: GivenSettings): Partial<Answers> {
  const { POSTERN_HOSTNAME: hostname, POSTERN_ACME: email } = values;
  return { ...(hostname && { hostname }), ...(email && { email }) };
}

/**
 * The settings to write. With certificates of its own, the server is reached by its name; a given URL is that of a proxy, which
 * has them.
 */
export function missingSettings(
  { values, path, ofFile }: GivenSettings,
  { hostname, email }: Answers,
  hasSentMail: boolean,
): Record<string, string> {
  const given = values.POSTERN_HOSTNAME;
  const isOther = given !== undefined && given !== '' && given !== hostname;
  if (isOther && (hasSentMail || !ofFile.has('POSTERN_HOSTNAME'))) {
    const sent = hasSentMail ? ', and mail was sent by that name' : '';
    throw new Failure(
      `${path ?? 'the environment'} says POSTERN_HOSTNAME=${given}, not ${hostname}${sent}; give --hostname ${given}, or correct the setting`,
    );
  }
  const wanted = {
    POSTERN_HOSTNAME: hostname,
    ...(!values.POSTERN_BASE_URL && { POSTERN_ACME: email }),
    POSTERN_INBOUND_PORT: '25',
  };
  const isMissing = (name: string) => !values[name] || (isOther && name === 'POSTERN_HOSTNAME');
  return Object.fromEntries(Object.entries(wanted).filter(([name]) => isMissing(name)));
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

export const settingLines = (settings: Record<string, string>): string[] =>
  Object.entries(settings).map(([name, value]) => `${name}=${value}`);

/** `isRunning`: a server that nothing here restarts. */
export function settingsStep(
  { path }: GivenSettings,
  missing: Record<string, string>,
  isRunning: boolean,
): Step {
  const lines = settingLines(missing);
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
      writeSettings(path, missing);
      return isRunning ? warning(`wrote ${path}`, restart) : ok(`wrote ${path}`);
    },
    cure: 'check the owner and the permissions of the file',
  };
}

export const restart = 'restart the server: it runs with the settings from before';

/** Replaces the last line of each setting, which is the one in force, or adds one. */
export function writeSettings(path: string, settings: Record<string, string>): void {
  const before = existsSync(path) ? readFileSync(path, 'utf8').replace(/[^\n]$/, '$&\n') : head;
  const { variables } = parseEnvFile(before);
  const lines = before.split('\n');
  const added: string[] = [];
  for (const [name, value] of Object.entries(settings)) {
    const known = variables.get(name);
    if (known) lines[known.line - 1] = `${name}=${value}`;
    else added.push(`${name}=${value}\n`);
  }
  makeDirectory(dirname(path));
  writeAtomic(path, lines.join('\n') + added.join(''));
}
