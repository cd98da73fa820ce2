/** The entries of `postern status`: one for each thing that is wrong, the most urgent first. */
import { type Cause, rankOf } from '#operate/condition/causes.ts';
import type { Severity } from '#operate/condition/condition.ts';

export interface Need {
  cause: Cause;
  severity: Exclude<Severity, 'ok'>;
  /** A destination, an organization, a domain, a webhook, or this server. */
  subject: string;
  /** Set if its owners can solve it. */
  orgId?: string;
  /** Null if it is not known. */
  since: number | null;
  figure: string;
  /** The words of another host, unchanged. */
  reply?: string | null;
  /** A sentence. */
  advice: string;
  /** The command to run next. */
  command: string;
  /** The page of the dashboard that shows it. */
  path: string;
  /** Set for a destination, or for all that cannot be reached. */
  traffic?: Traffic | null;
}

interface Traffic {
  waiting: number;
  perMinute: number | null;
  drainMs: number | null;
}

export const thisServer = 'this server';

/** Sorts: first the needs for action, then by cause, then the oldest. */
export function ranked(needs: Need[]): Need[] {
  return needs.toSorted(
    (a, b) =>
      Number(a.severity === 'watch') - Number(b.severity === 'watch') ||
      rankOf(a.cause) - rankOf(b.cause) ||
      (a.since ?? 0) - (b.since ?? 0),
  );
}
