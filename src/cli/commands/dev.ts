/** `postern dev`: a server for development on this machine. The server's code is loaded only when it runs. */
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { domain, parser } from '#cli/args/arguments.ts';
import type { CommandContext } from '#cli/command-context.ts';
import { wholeNumber } from '#platform/settings/grammar.ts';
import { devDirectory } from '#platform/settings/installation.ts';

interface Options {
  port?: number;
  domain: string;
  directory: string;
  fresh?: boolean;
}

export function devCommands(program: Command, context: CommandContext): void {
  program
    .command('dev')
    .description('Run a server for development: no mail leaves this machine.')
    .option(
      '--port <N>',
      'port of the API and the dashboard; without it, 8080 or any free one',
      parser(wholeNumber('a port', 0, 65535).read),
    )
    .option('--domain <D>', 'domain to send from; it is verified at once', domain, 'example.com')
    .option('--directory <DIR>', 'directory of the data', devDirectory)
    .option('--fresh', 'discard the data of earlier runs')
    .action(async ({ directory, ...options }: Options) => {
      const { runDev } = await import('#cli/dev/run-dev.ts');
      await runDev(context, { ...options, directory: resolve(directory) });
    });
}
