/**
 * What `postern status` reports: one entry for each thing that is wrong, in the order of urgency. This file is the table of
 * causes; the files beside it find them.
 */
import type { ProblemCause } from '../../record/problem-cause.ts';

export type NeedCause =
  | 'no_server'
  | 'disk'
  | 'certificate'
  | 'no_source'
  | ProblemCause
  | 'circuit_open'
  | 'slow'
  | 'complaint_rate'
  | 'bounce_rate'
  | 'domain_unverified'
  | 'webhook_failing'
  | 'backup';

/** In order of urgency. `label`: the cause in a few words. */
export const causes: Record<NeedCause, { label: string }> = {
  no_server: { label: 'no server' },
  disk: { label: 'disk' },
  no_source: { label: 'no source' },
  blocklisted: { label: 'blocklisted' },
  certificate: { label: 'certificate' },
  complaint_rate: { label: 'complaints' },
  bounce_rate: { label: 'bounces' },
  domain_unverified: { label: 'domain' },
  refusing: { label: 'refusing' },
  tls_failing: { label: 'TLS failing' },
  dns_failing: { label: 'DNS failing' },
  circuit_open: { label: 'circuit open' },
  unreachable: { label: 'unreachable' },
  hanging: { label: 'hanging' },
  throttled: { label: 'throttled' },
  webhook_failing: { label: 'webhook' },
  backup: { label: 'backup' },
  slow: { label: 'slow' },
  greylisting: { label: 'greylisting' },
};

const order = Object.keys(causes) as NeedCause[];

export interface Need {
  cause: NeedCause;
  /** act: it needs a person. watch: it passes by itself, or has only begun. */
  severity: 'act' | 'watch';
  /** A destination, an organization, a domain, a webhook, or this server. */
  subject: string;
  /** Null if it is not known. */
  since: number | null;
  figure: string;
  /** What another host said, unchanged; null if none did. */
  reply: string | null;
  /** A sentence. */
  advice: string;
  /** What to run next. */
  command: string;
  /** Where the dashboard shows it. */
  path: string;
  /** Of a destination. */
  traffic: Traffic | null;
}

export interface Traffic {
  waiting: number;
  perMinute: number | null;
  drainMs: number | null;
}

/** What needs a person first, then by cause, then the oldest. */
export function ranked(needs: Need[]): Need[] {
  return needs.toSorted(
    (a, b) =>
      Number(a.severity === 'watch') - Number(b.severity === 'watch') ||
      order.indexOf(a.cause) - order.indexOf(b.cause) ||
      (a.since ?? 0) - (b.since ?? 0),
  );
}

/** A name as a word of a command line. */
export function shellWord(name: string): string {
  return /^[\w.@:/+-]+$/.test(name) ? name : `'${name.replaceAll("'", String.raw`'\''`)}'`;
}
