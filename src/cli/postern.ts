/**
 * The command line as a function: arguments and a process in, an exit code out. Exit codes: 0 success, 1 refused or failed, 2
 * bad usage. Errors go to standard error, one line each, and say what to do; stack traces are never printed. Only the process
 * that is passed in is read or changed, and only the clock that is passed in is read. Importing this file has no effect.
 */
import { type Command, CommanderError } from 'commander';
import { type Clock, systemClock } from '#platform/base/clock.ts';
import { reasonOf } from '#platform/base/system-error.ts';
import { ConfigError } from '#platform/settings/config-error.ts';
import { type CommandContext, type CommandProcess, createCommandContext } from './command-context.ts';
import { createProgram, pathOf } from './commands.ts';

export async function runCommand(
  args: string[],
  process: CommandProcess,
  clock: Pick<Clock, 'now'> = systemClock,
): Promise<number> {
  const context = createCommandContext(process, clock);
  if (args[0] === 'complete') return completeFor(args.slice(args[1] === '--' ? 2 : 1), context);
  const program = await createProgram(context, args);
  try {
    if (args.every((arg) => arg === '--json')) program.outputHelp();
    else await program.parseAsync(args, { from: 'user' });
    return context.exitCode;
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return 0;
    const isUsage = error instanceof CommanderError;
    for (const line of isUsage ? usageErrors(program, args, error) : errorLines(error))
      context.out.warn(line);
    return isUsage ? 2 : 1;
  } finally {
    context.out.progress('');
    await context.close();
  }
}

/** The scripts of `postern completion` call this. It is not a command of the program, because it takes any words. */
async function completeFor(words: string[], context: CommandContext): Promise<number> {
  const { printCandidates } = await import('#cli/commands/completion.ts');
  try {
    await printCandidates(await createProgram(context, words.slice(0, -1)), context, words);
  } finally {
    await context.close();
  }
  return 0;
}

/** If the command is missing, its help is on standard error already. */
function usageErrors(program: Command, args: string[], error: CommanderError): string[] {
  if (error.code === 'commander.help') return [];
  return [`${sentence(error)}; see \`${pathOf(deepest(program, args))} --help\``];
}

/** Commander's message on one line, without its repetitions. */
function sentence({ message }: CommanderError): string {
  return message
    .replace(/^error: /, '')
    .replace(/\n\(Did you mean (.*)\?\)$/, '; did you mean $1?')
    .replace(/ argument '.*?' is invalid\. /s, ': ')
    .replace(/^command-argument value '.*?' is invalid for argument '(.*?)'\. /s, '$1: ')
    .replace(/\s+/g, ' ')
    .replace(/[.;]$/, '');
}

/** The most specific command that the arguments name. */
function deepest(program: Command, args: string[]): Command {
  let command = program;
  for (const arg of args.filter((each) => !each.startsWith('-'))) {
    const next = command.commands.find((each) => each.name() === arg);
    if (!next) break;
    command = next;
  }
  return command;
}

function errorLines(error: unknown): readonly string[] {
  if (error instanceof ConfigError) return error.problems;
  const { message, code } =
    error instanceof Error ? (error as NodeJS.ErrnoException) : { message: String(error) };
  // knex puts the SQL statement before the reason.
  const isStatement = /^(select|insert|update|delete|begin|pragma|create|alter)\b/i.test(message);
  const reason = isStatement
    ? `database error: ${message.split(' - ').at(-1)}`
    : (systemText(error) ?? message);
  return [[reason.replace(/\s+/g, ' '), remedies[code ?? '']].filter(Boolean).join('; ')];
}

/** `/etc/x: permission denied`; null if it is not an error of the system about a file. */
function systemText(error: unknown): string | null {
  const { path, syscall } = error as NodeJS.ErrnoException;
  return path === undefined || syscall === undefined ? null : `${path}: ${reasonOf(error)}`;
}

const remedies: Record<string, string> = {
  SQLITE_BUSY:
    'another program has locked the database: `fuser` on the file shows which; stop it, then try again',
  SQLITE_FULL: 'free some disk space, then try again',
  SQLITE_READONLY: 'run this as the user who owns the data directory',
};

if (import.meta.main) {
  // The files that commands write contain secrets and mail.
  process.umask(0o077);
  // The reader of a pipe (head, less) may close it early.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
  process.exitCode = await runCommand(process.argv.slice(2), process);
  // `doctor` may have given up on a connection, which would keep the process alive.
  process.stdout.write('', () => process.exit());
}
