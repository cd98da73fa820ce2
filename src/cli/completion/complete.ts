/**
 * The words that could come next on a command line, from the commands themselves: names of commands and options, the values that an
 * option or argument allows, and live names from the database. It never fails: what cannot be read is not offered.
 */
import type { Argument, Command, Option } from 'commander';
import { organizationId } from '#cli/args/lookup.ts';
import type { CommandContext } from '#cli/command-context.ts';
import { type Name, type NameKind, namesOf } from '#mail/record/rows/names.ts';

export interface Candidates {
  names: Name[];
  /** The shell completes names of files. */
  files: boolean;
}

const nothing: Candidates = { names: [], files: false };

/** The kinds of names that options and arguments take, by the command where that matters. */
const kindsOfOptions: Record<string, NameKind | 'file'> = {
  '--org': 'organization',
  '--destination': 'destination',
  '--domain': 'recipient-domain',
  'key --domain': 'sender-domain',
  '--email': 'email',
  'user --email': 'user',
  '--id': 'email',
  '--attach': 'file',
  'man --write': 'file',
};

const kindsOfArguments: Record<string, NameKind | 'file'> = {
  ORG: 'organization',
  FILE: 'file',
  'domain NAME': 'sender-domain',
  'doctor DOMAIN': 'sender-domain',
  'email ID': 'email',
  'returned ID': 'returned',
  'key ID': 'key',
  'queue DESTINATION': 'destination',
  'queue DOMAIN': 'recipient-domain',
  'queue SELECTOR': 'email',
  'suppression ADDRESS': 'suppressed',
  'user EMAIL': 'user',
  'webhook ID': 'webhook',
};

/** `words`: those after the program's name; the last is the one to complete, and may be empty. */
export async function complete(
  program: Command,
  context: CommandContext,
  words: string[],
): Promise<Candidates> {
  const start = words.at(-1) ?? '';
  const { command, given, position, open } = walk(program, words.slice(0, -1));
  const group = pathOf(command)[0] ?? '';
  const found = await candidatesAt();
  return { ...found, names: found.names.filter(({ value }) => value.startsWith(start)) };

  async function candidatesAt(): Promise<Candidates> {
    if (open)
      return ofValue(open, kindsOfOptions[`${group} ${open.long}`] ?? kindsOfOptions[open.long ?? '']);
    if (start.startsWith('-')) return { names: optionsOf(command), files: false };
    if (command.commands.length > 0)
      return position > 0 ? nothing : { names: subcommandsOf(command), files: false };
    const { registeredArguments: all } = command;
    const argument = all[position] ?? (all.at(-1)?.variadic ? all.at(-1) : undefined);
    if (!argument) return nothing;
    const name = argument.name();
    return ofValue(argument, kindsOfArguments[`${group} ${name}`] ?? kindsOfArguments[name]);
  }

  async function ofValue(one: Option | Argument, kind: NameKind | 'file' | undefined): Promise<Candidates> {
    const choices = choicesOf(one);
    if (choices.length > 0)
      return { names: choices.map((value) => ({ value, description: '' })), files: false };
    if (kind === undefined) return nothing;
    return kind === 'file'
      ? { names: [], files: true }
      : { names: await live(context, kind, given.get('--org'), start), files: false };
  }
}

interface Place {
  command: Command;
  /** The values of options so far. */
  given: Map<string, string>;
  /** How many arguments there are so far. */
  position: number;
  /** The option whose value comes next. */
  open: Option | null;
}

function walk(program: Command, words: string[]): Place {
  const place: Place = { command: program, given: new Map(), position: 0, open: null };
  for (const word of words) {
    const { command, open } = place;
    if (open) {
      place.given.set(open.long ?? '', word);
      place.open = null;
      continue;
    }
    if (word.startsWith('-')) {
      const option = allOptions(command).find(({ long, short }) => word === long || word === short);
      place.open = option && (option.required || option.optional) ? option : null;
      continue;
    }
    const next = command.commands.find((each) => each.name() === word);
    if (next) place.command = next;
    else place.position += 1;
  }
  return place;
}

function pathOf(command: Command): string[] {
  return command.parent ? [...pathOf(command.parent), command.name()] : [];
}

function allOptions(command: Command): Option[] {
  const { options } = command;
  return command.parent ? [...options, ...allOptions(command.parent)] : [...options];
}

function optionsOf(command: Command): Name[] {
  const own = allOptions(command).filter(({ hidden, long }) => !hidden && long !== '--version');
  const names = own.map(({ long, short, description }) => ({ value: long ?? short ?? '', description }));
  return [...names, { value: '--help', description: 'print the help' }];
}

function subcommandsOf(command: Command): Name[] {
  return command
    .createHelp()
    .visibleCommands(command)
    .map((each) => ({ value: each.name(), description: each.description() }));
}

/** The words of an enumeration, or of a name such as `<on|off>`; words in capitals stand for something else. */
function choicesOf(one: Option | Argument): readonly string[] {
  if (one.argChoices) return one.argChoices;
  const { choices } = (one.parseArg ?? {}) as { choices?: readonly string[] };
  if (choices) return choices;
  const name = 'flags' in one ? (/<([^<>]+)>/.exec(one.flags)?.[1] ?? '') : one.name();
  return name.includes('|') ? name.split('|').filter((part) => /^[a-z\d]+$/.test(part)) : [];
}

async function live(
  context: CommandContext,
  kind: NameKind,
  org: string | undefined,
  start: string,
): Promise<Name[]> {
  try {
    const db = await context.db();
    const orgId = await organizationId(db, org ?? (context.env().POSTERN_ORG?.trim() || undefined));
    return await namesOf(db, kind, { orgId, start });
  } catch {
    return [];
  }
}
