/** The result of a check, for the command line and the dashboard. */
import type { ZoneRecord } from '#accounts/zone-text.ts';

export type FindingStatus = 'ok' | 'warning' | 'failure' | 'skipped';

/** `1 failure`, `2 failures`, `3 ok`. */
export function counted(count: number, word: string): string {
  const isPlural = count !== 1 && /^(failure|warning)$/.test(word);
  return `${count} ${word}${isPlural ? 's' : ''}`;
}

export interface Finding {
  /** Check and subject together identify a finding. */
  check: string;
  /** The machine, DNS, a name, an address or a domain. */
  subject: string;
  /** failure: mail may be lost or refused. warning: less serious. skipped: not known, or not configured. */
  verdict: FindingStatus;
  found: string;
  /** The remedy; null if there is nothing to do. */
  advice: string | null;
  /** DNS records to publish. */
  records: ZoneRecord[];
}

export type FindingDraft = Omit<Finding, 'check' | 'subject'>;

/** One check of one subject. An error that it throws becomes a finding. */
export interface Check {
  check: string;
  subject: string;
  run(): Promise<FindingDraft>;
}

export function ok(found: string): FindingDraft {
  return { verdict: 'ok', found, advice: null, records: [] };
}

export function warning(found: string, advice: string, records: ZoneRecord[] = []): FindingDraft {
  return { verdict: 'warning', found, advice, records };
}

export function failure(found: string, advice: string, records: ZoneRecord[] = []): FindingDraft {
  return { verdict: 'failure', found, advice, records };
}

export function skipped(found: string, advice: string | null = null): FindingDraft {
  return { verdict: 'skipped', found, advice, records: [] };
}
