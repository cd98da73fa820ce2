/** `postern status`: one verdict, and what is wrong. Exit code 1 if something needs action, so that a monitor can run it. */
import type { Command } from 'commander';
import type { CommandContext } from '#cli/command-context.ts';
import { statusBlock } from '#cli/render/status-view.ts';
import { isWell, readStatus, statusDocument } from '#operate/status/read-status.ts';

export function statusCommand(program: Command, context: CommandContext): void {
  program
    .command('status')
    .description(
      'Print one verdict, then what is wrong, the most urgent first, each with the next command. Exit code 1 if something needs action.',
    )
    .option('--full', 'print replies and advice even if they do not fit the screen')
    .action(async ({ full = false }: { full?: true | false }) => {
      const { out, now } = context;
      const db = await context.db();
      const at = now();
      const served = await context.isServed();
      const status = await readStatus({ db, config: context.config(), now: at, served, triesLock: true });
      const size = { columns: out.columns, rows: full ? Number.POSITIVE_INFINITY : out.rows };
      out.print(statusDocument(status), statusBlock(status, size));
      if (!isWell(status)) context.exitCode = 1;
    });
}
