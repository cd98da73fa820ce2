/**
 * Destructive commands have this in common: they say what they affect, and ask on a terminal. `--yes` answers, `--dry-run`
 * ends there. A script is not asked; what cannot be undone with another command then needs `--yes`.
 */
import { createInterface } from 'node:readline/promises';
import type { Command } from 'commander';
import type { CommandContext } from '#cli/command-context.ts';
import { Failure } from '#cli/failure.ts';
import type { Cell } from '#cli/render/output.ts';

export interface Consent {
  yes?: boolean;
  dryRun?: boolean;
}

export function addConsent(command: Command): Command {
  return command.option('--yes', 'do not ask').option('--dry-run', 'only show what would be affected');
}

interface Effect {
  /** Asked on a terminal; without a question mark. */
  question: string;
  /** Names what is affected, in plain words and with --json. */
  fields: Record<string, Cell>;
  document: object;
  /** A script must give --yes. */
  isForGood?: boolean;
}

/** Whether a person can answer: both streams are terminals. */
export const canAsk = ({ stdin, stderr }: CommandContext['process']) =>
  stdin.isTTY === true && stderr.isTTY === true;

/** Whether to go on; prints what is affected if it is a dry run. Throws a Failure if the answer is no. */
export async function isWanted(
  { process, out }: CommandContext,
  { question, fields, document, isForGood = false }: Effect,
  { yes = false, dryRun = false }: Consent,
): Promise<boolean> {
  if (dryRun) {
    out.print({ dryRun: true, ...document }, { fields });
    return false;
  }
  if (yes) return true;
  if (!canAsk(process)) {
    if (isForGood)
      throw new Failure(
        `${question}? Nothing was changed; add --yes if it is meant, or --dry-run to see more`,
      );
    return true;
  }
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await terminal.question(`${question}? [y/N] `).finally(() => terminal.close());
  if (/^y(es)?$/i.test(answer.trim())) return true;
  throw new Failure('nothing was changed');
}
