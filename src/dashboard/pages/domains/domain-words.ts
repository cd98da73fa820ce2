/** What a look at DNS found of a record, in words: what is wrong, and what to do about it. */
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
  /** What is wrong; null: nothing. */
  wrong: string | null;
}

export function verdictOn(record: CheckedRecord): RecordVerdict {
  if (record.ok) return { tone: 'good', badge: 'Found', wrong: null };
  if (isUnknown(record)) {
    const wrong = `DNS gave no answer (${record.found[0]!.split(' ').at(-1)}): nothing is known of this record. Check again in a while.`;
    return { tone: 'warn', badge: 'No answer', wrong };
  }
  const tone = record.required ? 'bad' : 'warn';
  if (record.found.length === 0) return { tone, badge: 'Missing', wrong: missing(record) };
  return { tone, badge: 'Different', wrong: different(record) };
}

function missing({ type, name }: CheckedRecord): string {
  return `There is no ${type} record at ${name} yet. A new one can take some minutes to be seen. Some DNS providers add the domain themselves to the name that you enter.`;
}

function different(record: CheckedRecord): string {
  const { found, value, purpose } = record;
  switch (purpose) {
    case 'dkim':
      return ofDkim(record);
    case 'spf':
      return ofSpf(record);
    case 'return_path':
      return `Mail to this name goes elsewhere: bounces would not come back. Let it go to ${value.split(' ')[1]}.`;
    case 'dmarc':
    case 'dmarc_reports':
      return 'There is a record, but none that begins with v=DMARC1.';
    case 'tracking':
      return `The name leads to ${found.join(' and ')}, not to this server.`;
  }
}

const squeezed = (text: string) => text.replace(/["\s]+/g, '');

function ofDkim({ found, value }: CheckedRecord): string {
  const wanted = squeezed(value);
  const cut = found.map(squeezed).find((text) => text.length < wanted.length && wanted.startsWith(text));
  if (cut !== undefined)
    return `The record ends after ${cut.length} of ${wanted.length} characters: it was cut off when it was entered. Enter it whole; where your provider limits the length, as several strings in quotes.`;
  if (found.some((text) => squeezed(text).replaceAll('\\', '') === wanted))
    return 'The record has backslashes in it: enter the value without them.';
  if (found.some((text) => /(^|;)\s*p\s*=/.test(text)))
    return 'There is a DKIM record, but with another key: perhaps one of an earlier registration. Put this value in its place.';
  return 'There is a TXT record, but it has no DKIM key. Put this value in its place.';
}

function ofSpf({ found, value }: CheckedRecord): string {
  const policies = found.filter((text) => /^v=spf1( |$)/i.test(text));
  const mechanism = value.split(' ')[1]!;
  if (policies.length === 0)
    return 'The name has TXT records, but no SPF record among them. Add this one; the others stay.';
  if (policies.length > 1)
    return `There are ${policies.length} SPF records, and only one may be. Make one of them, with ${mechanism} in it.`;
  return `The SPF record does not name this server. Put ${mechanism} into it, before its last word.`;
}
