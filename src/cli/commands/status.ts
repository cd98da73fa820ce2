/**
 * `postern status`: one verdict, and what is wrong. Exit code 1 if something needs action, so that a monitor can run it. With
 * --watch it is drawn again and again, with --json a line each time.
 */
import type { Command } from 'commander';
import { spanOption } from '#cli/args/arguments.ts';
import type { CommandContext } from '#cli/command-context.ts';
import { type Size, statusBlock } from '#cli/render/status-view.ts';
import { watch } from '#cli/render/watching.ts';
import { isWell, readStatus, type Status, statusDocument } from '#operate/status/read-status.ts';

interface Options {
  full?: boolean;
  watch?: boolean;
  every: number;
}

export function statusCommand(program: Command, context: CommandContext): void {
  program
    .command('status')
    .description(
      'Print one verdict, then what is wrong, the most urgent first, each with the next command. Exit code 1 if something needs action.',
    )
    .option('--full', 'print replies and advice even if they do not fit the screen')
    .option(
      '--watch',
      'draw it again and again until q or Ctrl-C; with --json, or in a pipe, print it each time',
    )
    .addOption(spanOption('--every <TIME>', 'time between two updates of --watch', '5s'))
    .action((options: Options) =>
      options.watch ? watchStatus(context, options.every) : once(context, options),
    );
}

async function read(context: CommandContext): Promise<Status> {
  const [db, served] = [await context.db(), await context.isServed()];
  return readStatus({ db, config: context.config(), now: context.now(), served, triesLock: true });
}

async function once(context: CommandContext, { full = false }: Options): Promise<void> {
  const { out } = context;
  const status = await read(context);
  const size = { columns: out.columns, rows: full ? Number.POSITIVE_INFINITY : out.rows };
  out.print(statusDocument(status), statusBlock(status, size));
  if (!isWell(status)) context.exitCode = 1;
}

const minIntervalMs = 1_000;

async function watchStatus(context: CommandContext, everyMs: number): Promise<void> {
  const { out } = context;
  let status: Status;
  const watched = {
    async update() {
      status = await read(context);
    },
    lines: (size: Size) => statusBlock(status, size).lines,
    document: () => statusDocument(status),
    print: () =>
      out.print(null, statusBlock(status, { columns: out.columns, rows: Number.POSITIVE_INFINITY })),
  };
  await watch(context, watched, Math.max(everyMs, minIntervalMs));
}
