/** The facts that the steps of `postern init` share. */
import type { CommandContext } from '#cli/command-context.ts';
import type { Waiting } from '#cli/wait-for.ts';
import type { Answers } from './answers.ts';

export interface SetUp extends Waiting {
  context: CommandContext;
  answers: Answers;
  /** Name of the organization; null: the one that is there, or one named after the domain. */
  organization: string | null;
  /** Addresses of this machine as other hosts see them. */
  addresses: string[];
  /** The members of the JSON document, from the steps that have something to show. */
  shown: Record<string, unknown>;
}
