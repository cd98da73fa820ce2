/** `postern man` prints or writes the manual pages, which are made from the commands. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Command } from 'commander';
import type { CommandContext } from '#cli/command-context.ts';
import { Failure } from '#cli/failure.ts';
import { type ManPage, manPages } from '#cli/render/man-page.ts';
import about from '../../../package.json' with { type: 'json' };

/** `createWhole`: the program with all its commands. */
export function manCommand(
  program: Command,
  context: CommandContext,
  createWhole: () => Promise<Command>,
): void {
  program
    .command('man')
    .description('Print the source of a manual page, or write all of them to a directory.')
    .argument('[COMMAND]', 'the command, such as queue')
    .option(
      '--write <DIR>',
      'write a file for each page into this directory, such as /usr/local/share/man/man1',
    )
    .action(async (name: string | undefined, { write }: { write?: string }) => {
      const pages = manPages(await createWhole(), about.version);
      if (write !== undefined) await writePages(context, pages, write);
      else printPage(context, pages, name);
    });
}

function printPage({ out }: CommandContext, pages: ManPage[], name: string | undefined): void {
  const file = name === undefined ? 'postern.1' : `postern-${name}.1`;
  const page = pages.find((each) => each.file === file);
  if (!page) throw new Failure(`there is no command "${name}"; \`postern --help\` lists the commands`);
  if (out.json) out.print({ file, source: page.source });
  else out.write(`${page.source}\n`);
  out.note('`postern man queue | man -l -` shows a page; --write installs them all');
}

async function writePages({ out }: CommandContext, pages: ManPage[], directory: string): Promise<void> {
  try {
    await mkdir(directory, { recursive: true });
    // The user's umask is for secrets; everybody may read a manual page.
    for (const { file, source } of pages)
      await writeFile(join(directory, file), `${source}\n`, { mode: 0o644 });
  } catch (error) {
    const [reason] = (error as Error).message.split(',');
    throw new Failure(
      `the pages cannot be written to ${directory}: ${reason}; give a directory that can be written`,
    );
  }
  out.print({ written: pages.length, directory }, { fields: { written: pages.length, directory } });
}
