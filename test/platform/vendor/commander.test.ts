/** The private part of commander is still what src/platform/vendor/commander.ts expects. */
import test from 'ava';
import type { CommanderError } from 'commander';
import { checkPart, checkVersion } from '#lab/vendor.ts';

const file = 'src/platform/vendor/commander.ts';

test('commander is pinned to the version that was read', (t) => checkVersion(t, 'commander', file));

test('unknownOption reports a misspelt option with a suggestion, although a required one is missing', async (t) => {
  await checkPart(t, 'unknownOption of a commander Command', file, async () => {
    const { StrictCommand } = await import('#platform/vendor/commander.ts');
    const program = new StrictCommand('program').exitOverride().configureOutput({ outputError: () => {} });
    program
      .command('hold')
      .requiredOption('--reason <R>')
      .action(() => {});
    const error = await program.parseAsync(['hold', '--reasn', 'x'], { from: 'user' }).then(
      () => null,
      (thrown: CommanderError) => thrown,
    );
    return error?.message === "error: unknown option '--reasn'\n(Did you mean --reason?)";
  });
});
