/** The result of checking a DNS record, in words: what is wrong and what to do about it. */
import { type CheckedRecord, isUnknown } from '#accounts/check-records.ts';
import type { RecordPurpose } from '#accounts/domains.ts';

export const names: Record<RecordPurpose, string> = {
  dkim: 'DKIM',
  return_path: 'Return path',
  dmarc: 'DMARC',
  dmarc_reports: 'DMARC reports',
  tracking: 'Tracking links',
  receiving: 'Received mail',
};

export interface RecordVerdict {
  tone: 'good' | 'bad' | 'warn';
  badge: string;
  /** The trouble; null if the record is right. */
  wrong: string | null;
}

export function verdictOn(record: CheckedRecord): RecordVerdict {
  if (record.ok && record.problem !== null) return { tone: 'warn', badge: 'Found', wrong: record.problem };
  if (record.ok) return { tone: 'good', badge: 'Found', wrong: null };
  if (isUnknown(record)) {
    const wrong = `The DNS lookup failed (${record.found[0]!.split(' ').at(-1)}), so the record could not be checked. Check again in a few minutes.`;
    return { tone: 'warn', badge: 'No answer', wrong };
  }
  const tone = record.required ? 'bad' : 'warn';
  if (record.found.length === 0) return { tone, badge: 'Missing', wrong: missing(record) };
  return { tone, badge: 'Different', wrong: record.problem };
}

function missing({ type, name }: CheckedRecord): string {
  return `There is no ${type} record at ${name} yet. A new record can take a few minutes to appear. Some DNS providers append the domain to the name that you enter.`;
}
