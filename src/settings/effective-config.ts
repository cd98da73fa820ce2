/** The settings in force, for `postern config`. */
import { about, keys, load } from '../config.ts';
import type { Environment, Given } from './setting-sources.ts';

export interface EffectiveSetting {
  name: string;
  value: string;
  source: 'default' | Given['source'];
  description: string;
}

/** For `postern config`: the effective values and their sources, with secrets masked. */
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
