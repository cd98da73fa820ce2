/** `postern config`: the effective settings, each with its source; an invalid one is an error that names it. */
import type { Command } from 'commander';
import type { CommandContext } from '#cli/command-context.ts';
import { type EffectiveSetting, effectiveConfig } from '#platform/settings/config.ts';
import { loadShaping } from '#platform/settings/shaping-file.ts';

export function configCommands(program: Command, { out, env, config }: CommandContext): void {
  program
    .command('config')
    .description('Show every setting with its value and source.')
    .option('--check', 'only check the settings and the shaping file; exit code 1 if one is not valid')
    .action(({ check = false }: { check?: boolean }) => {
      const settings = effectiveConfig(env());
      const { shapingFile, mtaPerDestination } = config();
      if (check) loadShaping(shapingFile, mtaPerDestination);
      if (check) return out.print({ valid: true }, { fields: { settings: 'valid' } });
      out.print(settings.map(typed), {
        head: ['SETTING', 'FROM', 'VALUE'],
        rows: settings.map(({ name, source, value }) => [name, source, value]),
        empty: '',
      });
    });
}

/** A number and a truth are not text in JSON; a duration or a size is. */
function typed({ value, ...setting }: EffectiveSetting) {
  const isPlain = /^(?:\d{1,15}|true|false)$/.test(value);
  return { ...setting, value: isPlain ? (JSON.parse(value) as number | boolean) : value };
}
