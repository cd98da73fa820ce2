/**
 * Every setting of Postern: one zod schema with a name, a default and a description for each, in one file a subject. The Config
 * type, the check at start, `postern config`, docs/settings.md and the sample in config/ derive from it. Settings are read
 * once, at start, and passed to the code that needs them. All problems are reported together, one line each.
 * platform/settings/grammar.ts and platform/settings/durations.ts parse the values; platform/settings/setting-sources.ts reads
 * the sources.
 */
import { z } from 'zod';
import { bracketed } from '#platform/base/net/tcp-listen.ts';
import { acmeSettings } from './acme-settings.ts';
import { ConfigError } from './config-error.ts';
import { deliverySettings } from './delivery-settings.ts';
import { httpSettings } from './http-settings.ts';
import { nodeSettings } from './node-settings.ts';
import { publishSettings } from './publish-settings.ts';
import { retentionSettings } from './retention-settings.ts';
import { type Registered, registered, type Setting } from './setting.ts';
import {
  refuseAcmeWithoutPort,
  refuseRolesAlone,
  refuseShortEmailRetention,
  refuseUnknownWarmUpPool,
} from './setting-conflicts.ts';
import { type Environment, type Given, gather } from './setting-sources.ts';
import { smtpSettings } from './smtp-settings.ts';

const schema = z.object({
  ...nodeSettings,
  ...httpSettings,
  ...deliverySettings,
  ...retentionSettings,
  ...smtpSettings,
  ...acmeSettings,
  ...publishSettings,
});

type Key = keyof typeof schema.shape;

const keys = Object.keys(schema.shape) as Key[];

function about(key: Key): Registered {
  return registered.get(schema.shape[key])!;
}

/** Refuses settings that contradict each other, then fills in defaults that depend on other settings. */
const complete = schema
  .superRefine(refuseRolesAlone)
  .superRefine(refuseShortEmailRetention)
  .superRefine(refuseAcmeWithoutPort)
  .superRefine(refuseUnknownWarmUpPool)
  .transform((config) => ({
    ...config,
    baseUrl: config.baseUrl ?? defaultBaseUrl(config),
    returnPathDomain: config.returnPathDomain ?? config.hostname,
  }));

function defaultBaseUrl(config: z.output<typeof schema>): string {
  const { acme, acmeHttpsPort, hostname, httpHost, httpPort } = config;
  if (acme === null || acmeHttpsPort === null) return `http://${bracketed(httpHost)}:${httpPort}`;
  return new URL(`https://${hostname}:${acmeHttpsPort}`).origin;
}

export type Config = z.output<typeof complete>;

export const settings: readonly Setting[] = keys.map((key) => {
  const { grammar, ...documented } = about(key);
  return documented;
});

export function loadConfig(env: Environment = process.env): Config {
  return load(env).config;
}

/** The settings, and those that were given, each with its source. */
function load(env: Environment): { config: Config; given: Map<string, Given> } {
  const known = keys.map(about).map(({ name, grammar }) => ({ name, list: grammar.list === true }));
  const { given, problems } = gather(env, known);
  const texts = Object.fromEntries(keys.map((key) => [key, given.get(about(key).name)?.text]));
  const read = complete.safeParse(texts);
  for (const { path, message } of read.error?.issues ?? []) {
    const { name } = about(path[0] as Key);
    problems.push(`${name}: ${message}${given.get(name)?.where ?? ''}`);
  }
  if (problems.length > 0 || !read.success) throw new ConfigError(problems);
  return { config: read.data, given };
}

export interface EffectiveSetting {
  name: string;
  value: string;
  source: 'default' | Given['source'];
  description: string;
}

/** The output of `postern config`: the effective values and their sources, with secrets masked. */
export function effectiveConfig(env: Environment = process.env): EffectiveSetting[] {
  const { config, given } = load(env);
  return keys.map((key) => {
    const { name, description, grammar, default: byDefault } = about(key);
    const value = config[key];
    const printed = value === null ? '' : grammar.print(value);
    const source = given.get(name)?.source ?? 'default';
    return { name, value: printed === '' ? byDefault : printed, source, description };
  });
}
