/** `postern completion` prints a shell's script; the hidden `postern complete` is what the scripts call. */
import type { Command } from 'commander';
import { choice } from '#cli/args/arguments.ts';
import type { CommandContext } from '#cli/command-context.ts';
import { complete } from '#cli/completion/complete.ts';
import { type Shell, shellScripts, shells } from '#cli/completion/shell-scripts.ts';
import { sanitize } from '#platform/base/sanitize.ts';

export function completionCommand(program: Command, { out }: CommandContext): void {
  program
    .command('completion')
    .description('Print the script that completes commands, options and names in a shell.')
    .argument(`<${shells.join('|')}>`, 'the shell', choice('a shell', shells))
    .action((shell: Shell) => out.write(shellScripts[shell]));
}

/** A shell reads it at each press of Tab, so it prints nothing but candidates, and never fails. */
export async function printCandidates(
  program: Command,
  context: CommandContext,
  words: string[],
): Promise<void> {
  const { names, files } = await complete(program, context, words);
  // A name that would move the cursor, or turn the line around, cannot be typed either.
  const shown = names.filter(({ value }) => sanitize(value) === value);
  const lines = shown.map(
    ({ value, description }) => `${value}\t${sanitize(description.replace(/\s+/g, ' '))}\n`,
  );
  context.out.write(`${lines.join('')}${files ? ':files\n' : ''}`);
}
