/**
 * The command line as a table: one file a group, each adding its commands to the program. Nothing is opened until a
 * command runs. The list for README.md is read off the same program, so it cannot differ from it.
 */
import { Command, type Option, type ParseOptionsResult } from 'commander';
import about from '../../package.json' with { type: 'json' };
import { domainScopes, eventTypes, logStates, scopes } from './arguments.ts';
import { backupCommands } from './backup.ts';
import { configCommands } from './config.ts';
import { type Context, createContext } from './context.ts';
import { creditsCommands } from './credits.ts';
import { doctorCommands } from './doctor.ts';
import { domainCommands } from './domain.ts';
import { emailCommands } from './email.ts';
import { inboundCommands } from './inbound.ts';
import { keyCommands } from './key.ts';
import { listenCommands } from './listen.ts';
import { logsCommands } from './logs.ts';
import { moveCommands } from './move.ts';
import { orgCommands } from './org.ts';
import { queueCommands } from './queue.ts';
import { restoreCommands } from './restore.ts';
import { secretCommands } from './secret.ts';
import { suppressionCommands } from './suppression.ts';
import { topCommands } from './top.ts';
import { userCommands } from './user.ts';
import { webhookCommands } from './webhook.ts';

const groups: ((program: Command, context: Context) => void)[] = [
  orgCommands,
  keyCommands,
  domainCommands,
  creditsCommands,
  suppressionCommands,
  webhookCommands,
  userCommands,
  emailCommands,
  inboundCommands,
  queueCommands,
  logsCommands,
  topCommands,
  listenCommands,
  doctorCommands,
  secretCommands,
  backupCommands,
  restoreCommands,
  moveCommands,
  configCommands,
];

/** Commander complains of a required option that is missing before it looks at the misspelt one that stands there. */
class Strict extends Command {
  override createCommand(name?: string): Command {
    return new Strict(name);
  }

  override parseOptions(args: string[]): ParseOptionsResult {
    const parsed = super.parseOptions(args);
    const [stray] = parsed.unknown;
    const wantsHelp = parsed.unknown.some((each) => each === '-h' || each === '--help');
    if (stray !== undefined && !wantsHelp && this.commands.length === 0) {
      (this as unknown as { unknownOption(flag: string): never }).unknownOption(stray);
    }
    return parsed;
  }
}

/** Errors of usage are thrown, not printed: main.ts says them, and decides the exit code. */
export function createProgram(context: Context): Command {
  const program = new Strict('postern')
    .description(
      'Sends transactional email: organizations, keys, domains, credits, and what became of each mail.',
    )
    .version(about.version, '-V, --version', 'print the version')
    .option('--json', 'print one JSON document on standard output, nothing else')
    .helpOption('-h, --help', 'print this help')
    .helpCommand('help [command]', 'Print the help of a command.')
    .configureHelp({ showGlobalOptions: true, visibleGlobalOptions })
    .configureOutput({ outputError: () => {} })
    .exitOverride()
    .hook('preAction', () => {
      context.out.json = program.opts().json === true;
    });
  for (const add of groups) add(program, context);
  return program;
}

/** Of the program's own options, a command's help names the one that it obeys. */
function visibleGlobalOptions(command: Command): Option[] {
  const program = command.parent?.parent ?? command.parent;
  return program ? program.options.filter(({ long }) => long === '--json') : [];
}

export function commandTable(): { command: string; is: string }[] {
  const program = createProgram(createContext());
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
  const args = command.registeredArguments.map((each) => (each.required ? each.name() : `[${each.name()}]`));
  return [...args, ...command.options.map(optionUsage)];
}

/** The parsers that add to a list. */
const repeatable: unknown[] = [scopes, domainScopes, eventTypes, logStates];

function optionUsage(option: Option): string {
  const value = /<(.+)>/.exec(option.flags)?.[1];
  const usage = [option.short ?? option.long, value].filter(Boolean).join(' ');
  const repeats = repeatable.includes(option.parseArg);
  if (!option.mandatory) return repeats ? `[${usage}]…` : `[${usage}]`;
  return repeats ? `${usage} [${usage}]…` : usage;
}
