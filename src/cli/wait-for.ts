/** Waits for another program or a person, with a progress line that says for what and how long. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { CommandContext } from './command-context.ts';

export interface Waiting {
  context: Pick<CommandContext, 'out'>;
  /** Ctrl-C. */
  stopped: AbortSignal;
  /** How long at most. */
  waitMs: number;
  /** Says what Ctrl-C does. */
  onStop?: string;
  pollMs?: number;
}

/** The first answer that is not null; null if the time is over, or Ctrl-C was pressed. `what` is asked for each line. */
export async function waitFor<T>(
  { context, stopped, waitMs, onStop = 'stops, the next init goes on', pollMs = 2_000 }: Waiting,
  what: () => string,
  ask: () => Promise<T | null>,
): Promise<T | null> {
  const began = performance.now();
  for (;;) {
    const answer = await ask();
    const waited = performance.now() - began;
    if (answer !== null || stopped.aborted || waited >= waitMs) {
      context.out.progress('');
      return answer;
    }
    const seconds = Math.round(waited / 1000);
    context.out.progress(`waiting (${seconds} s; Ctrl-C ${onStop}) for ${what()}`);
    await sleep(Math.min(pollMs, waitMs - waited), undefined, { signal: stopped }).catch(() => {});
  }
}
