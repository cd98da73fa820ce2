/** `postern config`: the effective settings, each with its source. */
import type { Command } from 'commander';
import { effectiveConfig } from '../../settings/effective-config.ts';
import type { CommandContext } from '../command-context.ts';

export function configCommands(program: Command, { out, env }: CommandContext): void {
  program
    .command('config')
    .description('Show every setting with its value and source.')
    .action(() => {
      const settings = effectiveConfig(env());
      out.print(settings, {
        head: ['SETTING', 'FROM', 'VALUE'],
        rows: settings.map(({ name, source, value }) => [name, source, value]),
        empty: '',
      });
    });
}
