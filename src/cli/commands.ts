/**
 * The table of commands: one file for each group, loaded only if the group is named. Nothing is opened until a command
 * runs. docs/commands.md is generated from the same program.
 */
import type { Argument, Command, Option } from 'commander';
import about from '../../package.json' with { type: 'json' };
import { StrictCommand } from '../vendor/commander.ts';
import { domainScopes, eventTypes, logStates, scopes } from './args/arguments.ts';
import { type CommandContext, createCommandContext } from './command-context.ts';

type Group = (program: Command, context: CommandContext) => void;

/** In the order of the help. */
const groups: Record<string, () => Promise<Group>> = {
  org: async () => (await import('./commands/org.ts')).orgCommands,
  key: async () => (await import('./commands/key.ts')).keyCommands,
  domain: async () => (await import('./commands/domain/domain.ts')).domainCommands,
  credits: async () => (await import('./commands/credits.ts')).creditsCommands,
  suppression: async () => (await import('./commands/suppression.ts')).suppressionCommands,
  webhook: async () => (await import('./commands/webhook.ts')).webhookCommands,
  user: async () => (await import('./commands/user.ts')).userCommands,
  send: async () => (await import('./commands/email/send.ts')).sendCommand,
  email: async () => (await import('./commands/email/email.ts')).emailCommands,
  inbound: async () => (await import('./commands/inbound.ts')).inboundCommands,
  queue: async () => (await import('./commands/queue/queue.ts')).queueCommands,
  logs: async () => (await import('./commands/logs.ts')).logsCommands,
  top: async () => (await import('./commands/top.ts')).topCommands,
  listen: async () => (await import('./commands/listen.ts')).listenCommands,
  doctor: async () => (await import('./commands/doctor.ts')).doctorCommands,
  secret: async () => (await import('./commands/secret.ts')).secretCommands,
  backup: async () => (await import('./commands/backup.ts')).backupCommands,
  restore: async () => (await import('./commands/restore.ts')).restoreCommands,
  move: async () => (await import('./commands/move.ts')).moveCommands,
  migrate: async () => (await import('./commands/migrate-command.ts')).migrateCommands,
  config: async () => (await import('./commands/show-config.ts')).configCommands,
};

/** The program for these arguments. Usage errors are thrown, not printed: postern.ts prints them and sets the exit code. */
export async function createProgram(context: CommandContext, args: string[]): Promise<Command> {
  const program = new StrictCommand('postern')
    .description(
      'Manage Postern: organizations, keys, domains, credits, the queue, and the status of each email.',
    )
    .version(about.version, '-V, --version', 'print the version')
    .option('--json', 'print one JSON document on standard output and nothing else')
    .helpOption('-h, --help', 'print this help')
    .helpCommand('help [command]', 'Print the help of a command.')
    .configureHelp({ showGlobalOptions: true, visibleGlobalOptions })
    .configureOutput({
      writeOut: (text) => context.out.write(text),
      writeErr: (text) => context.process.stderr.write(text),
      outputError: () => {},
      getOutHelpWidth: () => context.out.columns,
      getErrHelpWidth: () => context.process.stderr.columns,
    })
    .exitOverride()
    .hook('preAction', () => {
      context.out.json = program.opts().json === true;
    });
  for (const add of await groupsFor(args)) add(program, context);
  return program;
}

/** The named group if there is one: loading them all takes as long as most commands do. */
async function groupsFor(args: string[]): Promise<Group[]> {
  const name = args.find((arg) => !arg.startsWith('-'));
  const named = name !== undefined && Object.hasOwn(groups, name) ? groups[name] : undefined;
  return Promise.all((named ? [named] : Object.values(groups)).map((load) => load()));
}

/** The help of a command lists the one option of the program that it obeys. */
function visibleGlobalOptions(command: Command): Option[] {
  const program = command.parent?.parent ?? command.parent;
  return program ? program.options.filter(({ long }) => long === '--json') : [];
}

export async function commandTable(): Promise<{ command: string; is: string }[]> {
  const program = await createProgram(createCommandContext(process), []);
  return leaves(program).map((command) => ({
    command: [pathOf(command), ...usageOf(command)].join(' '),
    is: command.description(),
  }));
}

function leaves(command: Command): Command[] {
  return command.commands.length === 0 ? [command] : command.commands.flatMap(leaves);
}

export function pathOf(command: Command): string {
  return command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name();
}

function usageOf(command: Command): string[] {
  const args = command.registeredArguments.map(argumentUsage);
  return [...args, ...command.options.map(optionUsage)];
}

function argumentUsage(argument: Argument): string {
  const name = argument.variadic ? `${argument.name()}…` : argument.name();
  return argument.required ? name : `[${name}]`;
}

/** The parsers of options that may be given several times. */
const repeatable: unknown[] = [scopes, domainScopes, eventTypes, logStates];

function optionUsage(option: Option): string {
  const value = /<(.+)>/.exec(option.flags)?.[1];
  const usage = [option.short ?? option.long, value].filter(Boolean).join(' ');
  const repeats = repeatable.includes(option.parseArg);
  if (!option.mandatory) return repeats ? `[${usage}]…` : `[${usage}]`;
  return repeats ? `${usage} [${usage}]…` : usage;
}
