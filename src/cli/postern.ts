/**
 * The command line's process: arguments in, an exit code out. 0 done, 1 refused or failed, 2 bad usage. Complaints go
 * to standard error, one line each, and say what to do; a stack trace helps no operator and is never printed.
 * Importing this file has no effect.
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
    process.exitCode = error instanceof CommanderError ? usage(program, args, error) : failure(error);
  } finally {
    await context.close();
  }
}

/** Help that was asked for is no error; help because a command was missing is, and stands on standard error already. */
function usage(program: Command, args: string[], error: CommanderError): number {
  if (error.exitCode === 0) return 0;
  if (error.code !== 'commander.help')
    say(`${sentence(error)}; see \`${pathOf(deepest(program, args))} --help\``);
  return 2;
}

/** Commander's own words, on one line. */
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

/** The command that the arguments name, as far as they do. */
function deepest(program: Command, args: string[]): Command {
  let command = program;
  for (const arg of args.filter((each) => !each.startsWith('-'))) {
    const next = command.commands.find((each) => each.name() === arg);
    if (!next) break;
    command = next;
  }
  return command;
}

function failure(error: unknown): number {
  if (error instanceof ConfigError) for (const fault of error.faults) say(fault);
  else say(reasonOf(error));
  return 1;
}

/** knex puts the statement before the reason; an operator needs the reason, and what to do about it. */
function reasonOf(error: unknown): string {
  const { message, code } =
    error instanceof Error ? (error as NodeJS.ErrnoException) : { message: String(error) };
  const isStatement = /^(select|insert|update|delete|begin|pragma|create|alter)\b/i.test(message);
  const reason = isStatement ? `database error: ${message.split(' - ').at(-1)}` : message;
  return [reason.replace(/\s+/g, ' '), remedies[code ?? '']].filter(Boolean).join('; ');
}

const remedies: Record<string, string> = {
  SQLITE_BUSY:
    'another program has locked the database: `fuser` on the file shows which; stop it, then try again',
  SQLITE_FULL: 'free some disk space, then try again',
  SQLITE_READONLY: 'run this as the user who owns the data directory',
};

function say(text: string): void {
  process.stderr.write(`postern: ${text}\n`);
}

if (import.meta.main) {
  // What a command writes has secrets in it, and people's mails.
  process.umask(0o077);
  // Whoever reads (head, less) may have had enough.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
  await run(process.argv.slice(2));
}
