/**
 * Manual pages (man(7)) from the commands: postern.1, and a page for each group of commands such as postern-queue.1. Only
 * the source of a page; `man -l` and an installed page show it.
 */
import type { Command } from 'commander';
import { examplesOf } from '#cli/args/examples.ts';

export interface ManPage {
  /** postern-queue.1 */
  file: string;
  source: string;
}

export function manPages(program: Command, version: string): ManPage[] {
  const groups = visible(program);
  return [overview(program, groups, version), ...groups.map((group) => pageOf(group, version))];
}

function overview(program: Command, groups: Command[], version: string): ManPage {
  const bySection = Map.groupBy(groups, (group) => group.helpGroup());
  return {
    file: 'postern.1',
    source: [
      head('postern', program.description(), version),
      '.SH SYNOPSIS',
      '.B postern',
      '.RI [ options ] " command " [ arguments ]',
      '.SH DESCRIPTION',
      escaped(program.description()),
      ...[...bySection].flatMap(([section, list]) => [
        `.SH ${escaped(section.replace(/:$/, '')).toUpperCase()}`,
        ...list.flatMap((group) => [
          '.TP',
          `.BR postern-${escaped(group.name())} (1)`,
          escaped(group.description()),
        ]),
      ]),
      '.SH OPTIONS',
      ...optionLines(program),
      ...exampleLines(''),
      ...closing,
    ].join('\n'),
  };
}

function pageOf(group: Command, version: string): ManPage {
  const name = `postern-${group.name()}`;
  const leaves = group.commands.length === 0 ? [group] : visible(group);
  const body =
    group.commands.length === 0
      ? ['.SH OPTIONS', ...argumentLines(group), ...optionLines(group)]
      : ['.SH COMMANDS', ...leaves.flatMap(commandLines)];
  return {
    file: `${name}.1`,
    source: [
      head(name, group.description(), version),
      '.SH SYNOPSIS',
      ...leaves.flatMap((leaf, at) => [...(at > 0 ? ['.br'] : []), ...synopsis(leaf)]),
      '.SH DESCRIPTION',
      escaped(group.description()),
      ...body,
      ...exampleLines(group.name()),
      ...closing,
      '.SH SEE ALSO',
      '.BR postern (1)',
      '',
    ].join('\n'),
  };
}

/** Without a date, so that a page changes only with the commands. */
function head(name: string, description: string, version: string): string {
  const [first = ''] = description.split(/(?<=\.)\s/);
  const brief = first.replace(/\.$/, '');
  return [
    `.TH ${name.toUpperCase().replaceAll('-', '\\-')} 1 "" "Postern ${version}" "Postern"`,
    '.nh',
    '.ad l',
    '.SH NAME',
    `${escaped(name)} \\- ${escaped(brief)}`,
  ].join('\n');
}

function visible(command: Command): Command[] {
  return command
    .createHelp()
    .visibleCommands(command)
    .filter((each) => each.name() !== 'help');
}

function wordsOf(command: Command): string[] {
  return command.parent ? [...wordsOf(command.parent), command.name()] : [command.name()];
}

function synopsis(command: Command): string[] {
  return [`.B ${escaped(wordsOf(command).join(' '))}`, `.RI "${escaped(command.usage())}"`];
}

function commandLines(command: Command): string[] {
  return [
    `.SS "${escaped(wordsOf(command).slice(1).join(' '))} ${escaped(command.usage())}"`,
    escaped(command.description()),
    ...argumentLines(command),
    ...optionLines(command),
  ];
}

function argumentLines(command: Command): string[] {
  return command.registeredArguments
    .filter(({ description }) => description)
    .flatMap((argument) => ['.TP', `.I ${escaped(argument.name())}`, escaped(argument.description)]);
}

function optionLines(command: Command): string[] {
  return command
    .createHelp()
    .visibleOptions(command)
    .flatMap((option) => ['.TP', `.B "${escaped(option.flags)}"`, escaped(option.description)]);
}

function exampleLines(path: string): string[] {
  const shown = examplesOf(path);
  if (shown.length === 0) return [];
  const each = shown.flatMap(({ line, description }) => [
    '.TP',
    `.B "postern ${escaped(line)}"`,
    escaped(description),
  ]);
  return ['.SH EXAMPLES', ...each];
}

const closing = [
  '.SH EXIT STATUS',
  '0 for success, 1 if the command was refused or failed, 2 for wrong usage.',
  '.SH ENVIRONMENT',
  '.TP',
  '.B POSTERN_ORG',
  'The organization that a command acts for without \\-\\-org.',
  '.TP',
  '.B POSTERN_DATA_DIR\\fR, \\fBPOSTERN_DATABASE_URL',
  'The installation that the command acts on.',
  '.TP',
  '.B NO_COLOR',
  'Without colours.',
];

/** Text for roff: hyphens as they are typed, and no line that begins with a control character. */
function escaped(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll('"', '\\(dq')
    .replace(/^(['.])/, '\\&$1');
}
