/** Waits until the server serves the database; commands never create it. */

import type { CommandContext } from '#cli/command-context.ts';
import { Failure } from '#cli/failure.ts';
import { waitFor } from '#cli/wait-for.ts';
import { ok } from '#operate/doctor/finding.ts';
import type { SetUp } from './set-up.ts';
import type { Step } from './step.ts';

export function serverStep(setUp: SetUp, needs: Step[], howToStart: string): Step {
  const isRunning = async () => ((await isServed(setUp.context)) ? ok('it runs') : null);
  return {
    what: 'wait for the server',
    needs,
    isDone: isRunning,
    async do() {
      setUp.context.out.warn(`no server runs yet; ${howToStart}`);
      const found = await waitFor(setUp, () => 'the server', isRunning);
      if (found !== null) return found;
      throw new Failure('it does not run');
    },
    cure: howToStart,
  };
}

/** False if there is no database yet, or its schema is being made. */
export async function isServed(context: CommandContext): Promise<boolean> {
  try {
    return await context.isServed();
  } catch {
    await context.close();
    return false;
  }
}
