/** What a check says: one shape for all of them, whoever shows it (the command line, the dashboard). */

export type FindingStatus = 'ok' | 'warning' | 'failure' | 'skipped';

/** A DNS record as it is to be published. */
export interface PasteRecord {
  type: string;
  name: string;
  value: string;
}

export interface Finding {
  /** What was looked at; with the subject it names a finding. */
  check: string;
  /** Whose it is: the machine, DNS, a name, an address, a domain. */
  subject: string;
  /** `skipped`: not known, or not asked for. Mail may be lost or refused on a failure; a warning costs less. */
  verdict: FindingStatus;
  found: string;
  /** What to do; null: nothing. */
  advice: string | null;
  records: PasteRecord[];
}

export type FindingDraft = Omit<Finding, 'check' | 'subject'>;

/** One check of one subject. What it throws becomes a finding, so it needs to catch nothing. */
export interface Check {
  check: string;
  subject: string;
  look(): Promise<FindingDraft>;
}

export function ok(found: string): FindingDraft {
  return { verdict: 'ok', found, advice: null, records: [] };
}

export function warning(found: string, advice: string, records: PasteRecord[] = []): FindingDraft {
  return { verdict: 'warning', found, advice, records };
}

export function failure(found: string, advice: string, records: PasteRecord[] = []): FindingDraft {
  return { verdict: 'failure', found, advice, records };
}

export function skipped(found: string, advice: string | null = null): FindingDraft {
  return { verdict: 'skipped', found, advice, records: [] };
}
