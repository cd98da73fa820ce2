/** The result of checking a DNS record, in words: what is wrong and what to do about it. */
import { type CheckedRecord, isUnknown, type RecordPurpose } from '../../../accounts/domains.ts';

export const names: Record<RecordPurpose, string> = {
  dkim: 'DKIM',
  spf: 'SPF',
  return_path: 'Bounces',
  dmarc: 'DMARC',
  dmarc_reports: 'DMARC reports',
  tracking: 'Tracking links',
};

export interface RecordVerdict {
  tone: 'good' | 'bad' | 'warn';
  badge: string;
  /** The fault; null if the record is right. */
  wrong: string | null;
}

export function verdictOn(record: CheckedRecord): RecordVerdict {
  if (record.ok) return { tone: 'good', badge: 'Found', wrong: null };
  if (isUnknown(record)) {
    const wrong = `The DNS lookup failed (${record.found[0]!.split(' ').at(-1)}), so the record could not be checked. Check again in a few minutes.`;
    return { tone: 'warn', badge: 'No answer', wrong };
  }
  const tone = record.required ? 'bad' : 'warn';
  if (record.found.length === 0) return { tone, badge: 'Missing', wrong: missing(record) };
  return { tone, badge: 'Different', wrong: different(record) };
}

function missing({ type, name }: CheckedRecord): string {
  return `There is no ${type} record at ${name} yet. A new record can take a few minutes to appear. Some DNS providers append the domain to the name that you enter.`;
}

function different(record: CheckedRecord): string {
  const { found, value, purpose } = record;
  switch (purpose) {
    case 'dkim':
      return ofDkim(record);
    case 'spf':
      return ofSpf(record);
    case 'return_path':
      return `Mail to this name goes to another server, so bounces do not come back. Point the record to ${value.split(' ')[1]}.`;
    case 'dmarc':
    case 'dmarc_reports':
      return 'There is a record, but it does not begin with v=DMARC1.';
    case 'tracking':
      return `The name points to ${found.join(' and ')}, not to this server.`;
  }
}

const squeezed = (text: string) => text.replace(/["\s]+/g, '');

function ofDkim({ found, value }: CheckedRecord): string {
  const wanted = squeezed(value);
  const cut = found.map(squeezed).find((text) => text.length < wanted.length && wanted.startsWith(text));
  if (cut !== undefined)
    return `The record ends after ${cut.length} of ${wanted.length} characters: it was cut off when it was entered. Enter the whole value; if your provider limits the length, split it into several quoted strings.`;
  if (found.some((text) => squeezed(text).replaceAll('\\', '') === wanted))
    return 'The record contains backslashes. Enter the value without them.';
  if (found.some((text) => /(^|;)\s*p\s*=/.test(text)))
    return 'There is a DKIM record, but with a different key, perhaps from an earlier registration. Replace it with this value.';
  return 'There is a TXT record, but it has no DKIM key. Replace it with this value.';
}

function ofSpf({ found, value }: CheckedRecord): string {
  const policies = found.filter((text) => /^v=spf1( |$)/i.test(text));
  const mechanism = value.split(' ')[1]!;
  if (policies.length === 0)
    return 'The name has TXT records, but none of them is an SPF record. Add this one and keep the others.';
  if (policies.length > 1)
    return `There are ${policies.length} SPF records, but only one is allowed. Merge them into one that contains ${mechanism}.`;
  return `The SPF record does not include this server. Add ${mechanism} before its last term.`;
}
