/**
 * The process of the command line. Exit codes: 0 success, 1 refused or failed, 2 bad usage. Errors go to standard error,
 * one line each, and say what to do; stack traces are never printed. Importing this file has no effect.
 */
import { type Command, CommanderError } from 'commander';
import { ConfigError } from '../settings/config-error.ts';
import { createCommandContext } from './command-context.ts';
import { createProgram, pathOf } from './commands.ts';

async function run(args: string[]): Promise<void> {
  const context = createCommandContext();
  const program = await createProgram(context, args);
  try {
    if (args.every((arg) => arg === '--json')) program.outputHelp();
    else await program.parseAsync(args, { from: 'user' });
  } catch (error) {
    const isUsage = error instanceof CommanderError;
    for (const line of isUsage ? usageErrors(program, args, error) : errorLines(error))
      context.out.warn(line);
    process.exitCode = isUsage ? (error.exitCode === 0 ? 0 : 2) : 1;
  } finally {
    context.out.progress('');
    await context.close();
  }
}

/** Nothing to add if help was printed: on request, or because the command is missing. */
function usageErrors(program: Command, args: string[], error: CommanderError): string[] {
  if (error.exitCode === 0 || error.code === 'commander.help') return [];
  return [`${sentence(error)}; see \`${pathOf(deepest(program, args))} --help\``];
}

/** Commander's message on one line, without its repetitions. */
function sentence({ message }: CommanderError): string {
  return message
    .replace(/^error: /, '')
    .replace(/\n\(Did you mean (.*)\?\)$/, '; did you mean $1?')
    .replace(/ argument '.*?' is invalid\. /s, ': ')
    .replace(/^option .* from env '(.*?)' is invalid\. /s, '$1: ')
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
  if (error instanceof ConfigError) return error.faults;
  const { message, code } =
    error instanceof Error ? (error as NodeJS.ErrnoException) : { message: String(error) };
  // knex puts the SQL statement before the reason.
  const isStatement = /^(select|insert|update|delete|begin|pragma|create|alter)\b/i.test(message);
  const reason = isStatement ? `database error: ${message.split(' - ').at(-1)}` : message;
  return [[reason.replace(/\s+/g, ' '), remedies[code ?? '']].filter(Boolean).join('; ')];
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
  await run(process.argv.slice(2));
}
