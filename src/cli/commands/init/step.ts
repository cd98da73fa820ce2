/**
 * A step of `postern init`, and the walk through them. A step changes nothing if it is done already, and all of it or nothing
 * otherwise, so that a run can be stopped anywhere and continued by the next one. A step that fails stops only those that need
 * it.
 */
import { type FindingDraft, failure, skipped } from '#operate/doctor/finding.ts';

export interface Step {
  /** An imperative, such as "write the settings". */
  what: string;
  needs: Step[];
  /** Null if there is something to do. */
  isDone(): Promise<FindingDraft | null>;
  do(): Promise<FindingDraft>;
  /** More than `what`, for --dry-run. */
  plan?: string;
  /** The remedy if it fails and the error does not say one. */
  cure: string;
}

export interface StepResult extends FindingDraft {
  step: Step;
}

interface Walk {
  isDryRun: boolean;
  stopped: AbortSignal;
  onResult(result: StepResult): void;
}

/** Takes steps, one after the other, and knows the results of those before. */
export function createWalk({ isDryRun, stopped, onResult }: Walk): (steps: Step[]) => Promise<void> {
  const done = new Set<Step>();

  async function take(step: Step): Promise<FindingDraft> {
    const missing = step.needs.find((needed) => !done.has(needed));
    const toDo = skipped(step.plan === undefined ? 'to do' : `to do: ${step.plan}`);
    if (missing) return isDryRun ? toDo : skipped(`not tried: it needs "${missing.what}"`);
    try {
      return (await step.isDone()) ?? (isDryRun ? toDo : await step.do());
    } catch (error) {
      // As everywhere, the remedy comes after a semicolon.
      const [found, ...advice] = (error as Error).message.split('; ');
      return failure(found!, advice.join('; ') || step.cure);
    }
  }

  return async (steps) => {
    for (const step of steps) {
      if (stopped.aborted) return;
      const result = { step, ...(await take(step)) };
      if (result.verdict === 'ok' || result.verdict === 'warning') done.add(step);
      if (!stopped.aborted || done.has(step)) onResult(result);
    }
  };
}
