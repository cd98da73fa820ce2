/** The reports on domains that others send us by mail. Plain data. */

export type AggregateReport = DmarcReport | TlsReport;

export interface DmarcReport {
  kind: 'dmarc';
  domain: string;
  /** The reporter's own name. */
  reporter: string;
  reportId: string;
  beginsAt: number;
  endsAt: number;
  policy: string | null;
  totals: { messages: number; passed: number; quarantined: number; rejected: number };
  /** Sorted by messages, the most first; at most `maxSources`. */
  sources: DmarcSource[];
}

/** The mail from one address with one From domain. `dkim`, `spf`: passed, and aligned with the domain. */
export interface DmarcSource {
  ip: string;
  messages: number;
  dkim: boolean;
  spf: boolean;
  disposition: string;
  headerFrom: string;
}

export interface TlsReport {
  kind: 'tls';
  domain: string;
  reporter: string;
  reportId: string;
  beginsAt: number;
  endsAt: number;
  policy: string | null;
  totals: { sessions: number; failed: number };
  /** The most frequent first; at most `maxFailures`. */
  failures: ReportedTlsFailure[];
}

export interface ReportedTlsFailure {
  type: string;
  sessions: number;
  host: string | null;
  reason: string | null;
}
