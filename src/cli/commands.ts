/**
 * The table of commands: one file for each group, loaded only if the group is named. Nothing is opened until a command
 * runs. docs/commands.md is generated from the same program.
 */
import type { Argument, Command, Option } from 'commander';
import { domainScopes, eventTypes, logStates, scopes } from '#cli/args/arguments.ts';
import { examplesText } from '#cli/args/examples.ts';
import { StrictCommand } from '#platform/vendor/commander.ts';
import about from '../../package.json' with { type: 'json' };
import { type CommandContext, createCommandContext } from './command-context.ts';

type Group = (program: Command, context: CommandContext) => void;
type LoadGroup = () => Promise<Group>;

/** In the order of the help: what operators do daily, at first, and now and then. */
const sections: Record<string, Record<string, LoadGroup>> = {
  Daily: {
    status: async () => (await import('#cli/commands/status.ts')).statusCommand,
    send: async () => (await import('#cli/commands/email/send.ts')).sendCommand,
    email: async () => (await import('#cli/commands/email/email.ts')).emailCommands,
    pause: async () => (await import('#cli/commands/queue/pause-commands.ts')).pauseCommands,
    queue: async () => (await import('#cli/commands/queue/queue.ts')).queueCommands,
    logs: async () => (await import('#cli/commands/logs.ts')).logsCommands,
    top: async () => (await import('#cli/commands/top.ts')).topCommands,
    returned: async () => (await import('#cli/commands/returned.ts')).returnedCommands,
    received: async () => (await import('#cli/commands/received/received-commands.ts')).receivedCommands,
    suppression: async () => (await import('#cli/commands/suppression.ts')).suppressionCommands,
  },
  'Set-up': {
    init: async () => (await import('#cli/commands/init/init.ts')).initCommand,
    dev: async () => (await import('#cli/commands/dev.ts')).devCommands,
    org: async () => (await import('#cli/commands/org.ts')).orgCommands,
    use: async () => (await import('#cli/commands/operator/use-organization.ts')).useCommand,
    domain: async () => (await import('#cli/commands/domain/domain.ts')).domainCommands,
    key: async () => (await import('#cli/commands/key.ts')).keyCommands,
    stream: async () => (await import('#cli/commands/stream/stream-commands.ts')).streamCommands,
    credits: async () => (await import('#cli/commands/credits.ts')).creditsCommands,
    user: async () => (await import('#cli/commands/user.ts')).userCommands,
    webhook: async () => (await import('#cli/commands/webhook.ts')).webhookCommands,
    route: async () => (await import('#cli/commands/received/route-commands.ts')).routeCommands,
    open: async () => (await import('#cli/commands/operator/open-dashboard.ts')).openCommand,
    listen: async () => (await import('#cli/commands/listen.ts')).listenCommands,
    completion: async () => (await import('#cli/commands/completion.ts')).completionCommand,
    man: async () => {
      const { manCommand } = await import('#cli/commands/man.ts');
      return (program, context) => manCommand(program, context, () => createProgram(context, []));
    },
  },
  Upkeep: {
    certificate: async () => (await import('#cli/commands/certificate-command.ts')).certificateCommands,
    doctor: async () => (await import('#cli/commands/doctor.ts')).doctorCommands,
    bugreport: async () => (await import('#cli/commands/operator/bugreport.ts')).bugreportCommand,
    config: async () => (await import('#cli/commands/show-config.ts')).configCommands,
    backup: async () => (await import('#cli/commands/backup.ts')).backupCommands,
    restore: async () => (await import('#cli/commands/restore.ts')).restoreCommands,
    secret: async () => (await import('#cli/commands/secret.ts')).secretCommands,
    upgrade: async () => (await import('#cli/commands/upgrade.ts')).upgradeCommand,
    leftovers: async () => (await import('#cli/commands/operator/leftovers.ts')).leftoversCommand,
    migrate: async () => (await import('#cli/commands/migrate-command.ts')).migrateCommands,
    move: async () => (await import('#cli/commands/move.ts')).moveCommands,
  },
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
    .configureHelp({ showGlobalOptions: true, visibleGlobalOptions })
    .configureOutput({
      writeOut: (text) => context.out.write(text),
      writeErr: (text) => context.process.stderr.write(text),
      outputError: () => {},
      getOutHelpWidth: () => context.out.columns,
      getErrHelpWidth: () => context.process.stderr.columns,
    })
    .exitOverride()
    .hook('preAction', (_, command) => {
      context.out.json = program.opts().json === true;
      requireValues(command, args);
    });
  program.addHelpCommand(
    program
      .createCommand('help')
      .argument('[command]')
      .description('Print the help of a command.')
      .helpGroup('Set-up:')
      .helpOption(false),
  );
  for (const { section, groups } of await groupsFor(args)) {
    program.commandsGroup(`${section}:`);
    for (const add of groups) add(program, context);
  }
  addExamples(program, []);
  return program;
}

/** Commander takes `--help` in `--name --help` for the name. A value that begins so is given as `--text=--…`. */
function requireValues(command: Command, args: string[]): void {
  const isOption = (value: unknown) =>
    typeof value === 'string' && /^--[a-z]/.test(value) && args.includes(value);
  const empty = command.options.find(
    (option) => option.required && [command.opts()[option.attributeName()]].flat().some(isOption),
  );
  if (empty) command.error(`option '${empty.flags}' argument missing`, { exitCode: 2 });
}

/** The named group if there is one: loading them all takes as long as most commands do. */
async function groupsFor(args: string[]): Promise<{ section: string; groups: Group[] }[]> {
  const name = args.find((arg) => !arg.startsWith('-'));
  const all = Object.entries(sections);
  const named = name === undefined ? undefined : all.find(([, loads]) => Object.hasOwn(loads, name));
  if (named) return [{ section: named[0], groups: [await named[1][name!]!()] }];
  return Promise.all(
    all.map(async ([section, loads]) => ({
      section,
      groups: await Promise.all(Object.values(loads).map((load) => load())),
    })),
  );
}

function addExamples(command: Command, path: string[]): void {
  command.addHelpText('after', () => examplesText(path.join(' ')));
  for (const each of command.commands) addExamples(each, [...path, each.name()]);
}

/** The help of a command lists the one option of the program that it obeys. */
function visibleGlobalOptions(command: Command): Option[] {
  const program = command.parent?.parent ?? command.parent;
  return program ? program.options.filter(({ long }) => long === '--json') : [];
}

export async function commandTable(): Promise<{ section: string; command: string; description: string }[]> {
  const program = await createProgram(createCommandContext(process), []);
  return program.commands.flatMap((group) =>
    leaves(group).map((command) => ({
      section: group.helpGroup().replace(/:$/, ''),
      command: [pathOf(command), ...usageOf(command)].join(' '),
      description: command.description(),
    })),
  );
}

export function leaves(command: Command): Command[] {
  return command.commands.length === 0 ? [command] : command.commands.flatMap(leaves);
}

export function pathOf(command: Command): string {
  return command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name();
}

function usageOf(command: Command): string[] {
  const args = command.registeredArguments.map(argumentUsage);
  return [...args, ...command.options.filter(({ hidden }) => !hidden).map(optionUsage)];
}

function argumentUsage(argument: Argument): string {
  const name = argument.variadic ? `${argument.name()}…` : argument.name();
  return argument.required ? name : `[${name}]`;
}

/** The parsers of options that may be given several times. */
const repeatable: unknown[] = [scopes, domainScopes, eventTypes, logStates];

function optionUsage(option: Option): string {
  const value = /<([^<>]+)>/.exec(option.flags)?.[1];
  const usage = [option.short ?? option.long, value].filter(Boolean).join(' ');
  const repeats = repeatable.includes(option.parseArg);
  if (!option.mandatory) return repeats ? `[${usage}]…` : `[${usage}]`;
  return repeats ? `${usage} [${usage}]…` : usage;
}
