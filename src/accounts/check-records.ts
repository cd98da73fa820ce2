/**
 * Checks what DNS has for a sender domain or for the server: whether each record serves, and if not, what is wrong and what to
 * do about it. A domain is verified if verifiers find our public key in its DKIM record; the other records are recommended.
 */
import { isNoRecord, normalName, type Resolve } from '#platform/base/net/resolve.ts';
import { isSameAddress } from '#platform/values/reverse-name.ts';
import { type Judgement, judgeDkim } from './dkim-record.ts';
import type { DnsRecord } from './domains.ts';
import { checkReturnPathRecord } from './return-path-record.ts';

/** A record of a sender domain, or one of the server (server-records.ts). */
export interface WantedRecord extends Omit<DnsRecord, 'type' | 'purpose'> {
  type: DnsRecord['type'] | 'A' | 'AAAA' | 'PTR';
  purpose: DnsRecord['purpose'] | 'address' | 'reverse' | 'bounces' | 'spf';
}

interface Checked {
  ok: boolean;
  /** The records in DNS; the reason if the lookup failed. */
  found: string[];
  /**
   * The trouble with the records in DNS and the remedy; also of a record that is `ok`, but should be changed. Null if
   * nothing is wrong, if there is none, or if the lookup failed.
   */
  problem: string | null;
}

export type CheckedRecord<T extends WantedRecord = DnsRecord> = T & Checked;

const noAnswer = 'look-up failed: ';

export async function checkRecords<T extends WantedRecord>(
  records: T[],
  resolve: Resolve,
): Promise<CheckedRecord<T>[]> {
  return Promise.all(
    records.map(async (record) => {
      try {
        if (record.purpose === 'return_path')
          return { ...record, ...(await checkReturnPathRecord(record.name, record.value, resolve)) };
        const found = (await resolve(record.name, record.type)).map(printed);
        if (found.length === 0) return { ...record, ok: false, found, problem: null };
        return { ...record, found, ...(await judge(record, found)) };
      } catch (error) {
        const found = isNoRecord(error) ? [] : [`${noAnswer}${(error as NodeJS.ErrnoException).code}`];
        return { ...record, ok: false, found, problem: null };
      }
    }),
  );
}

function isVerified(records: CheckedRecord[]): boolean {
  return records.every(({ ok, required }) => ok || !required);
}

/** DNS gave no answer (SERVFAIL, a timeout), so it is unknown whether the record exists. */
export function isUnknown({ ok, found }: Checked): boolean {
  return !ok && found.length === 1 && found[0]!.startsWith(noAnswer);
}

/** The required records that DNS does not have, or has with another value. */
export function missingRecords(records: CheckedRecord[]): CheckedRecord[] {
  return records.filter((record) => record.required && !record.ok && !isUnknown(record));
}

/** The domain's status after a check; null if a required record could not be looked up. */
export function statusAfter(records: CheckedRecord[]): 'verified' | 'pending' | null {
  if (isVerified(records)) return 'verified';
  return records.some((record) => record.required && isUnknown(record)) ? null : 'pending';
}

/** node:dns gives TXT as its character-strings, MX as an object, CNAME as a name. */
function printed(answer: unknown): string {
  if (typeof answer === 'string') return answer;
  if (Array.isArray(answer)) return answer.join('');
  const { priority, exchange } = answer as { priority: number; exchange: string };
  return `${priority} ${exchange}`;
}

/** `found`: the values of the name and type; at least one. */
async function judge(record: WantedRecord, found: string[]): Promise<Judgement> {
  if (record.purpose === 'dkim') return judgeDkim(found, record.value);
  if (record.purpose === 'receiving') return judgeReceiving(found, record.value.split(' ')[1]!);
  const problem = problemOf(
    record,
    found.map((text) => text.replace(/\s+/g, ' ').trim()),
  );
  return { ok: problem === null, problem };
}

function problemOf({ purpose, value }: WantedRecord, found: string[]): string | null {
  switch (purpose) {
    case 'dmarc':
    case 'dmarc_reports':
      return dmarcProblem(found);
    case 'tracking':
      if (found.some((text) => normalName(text) === value)) return null;
      return `The name points to ${found.join(' and ')}, not to this server.`;
    case 'address':
      if (found.some((text) => isSameAddress(text, value))) return null;
      return `The name leads to ${found.join(' and ')}, not to this server. Add ${value}, and remove the addresses of other machines.`;
    case 'reverse':
      if (found.some((text) => normalName(text) === value)) return null;
      return `The reverse name is ${found.join(' and ')}. Change it to ${value} at the provider of the address.`;
    case 'bounces': {
      const host = value.split(' ')[1]!;
      if (found.some((text) => normalName(text.split(' ')[1] ?? '') === host)) return null;
      return `Mail to this name goes to another server, so bounces do not come back. Point the record to ${host}.`;
    }
    case 'spf':
      return spfProblem(found, value.split(' ')[1]!);
    case 'dkim':
    case 'return_path':
    case 'receiving':
      return null;
  }
}

/** Senders ask the hosts of the lowest preference first (RFC 5321 section 5.1), and the others only while those are away. */
function judgeReceiving(found: string[], host: string): Judgement {
  const records = found.map((text) => {
    const [preference, exchange = ''] = text.split(' ');
    return { preference: Number(preference), exchange: normalName(exchange) };
  });
  const lowest = Math.min(...records.map(({ preference }) => preference));
  const others = records.filter(({ exchange }) => exchange !== host).map(({ exchange }) => exchange || '.');
  const where = others.join(' and ').slice(0, 500);
  if (!records.some(({ preference, exchange }) => preference === lowest && exchange === host))
    return {
      ok: false,
      problem: `Mail for this name goes to ${where}. Point the record to ${host} only if no mailboxes are there; otherwise receive at a subdomain.`,
    };
  if (others.length === 0) return { ok: true, problem: null };
  return {
    ok: true,
    problem: `Some mail for this name may go to ${where}, and does not come here then. Remove that MX record.`,
  };
}

/** RFC 7208 section 4.5: several SPF records are an error, as if there were none. */
function spfProblem(found: string[], mechanism: string): string | null {
  const policies = found.filter((text) => /^v=spf1( |$)/i.test(text));
  if (policies.length === 0)
    return 'The name has TXT records, but none of them is an SPF record. Add this one and keep the others.';
  if (policies.length > 1)
    return `There are ${policies.length} SPF records, but only one is allowed. Merge them into one that contains ${mechanism}.`;
  if (mechanismsOf(policies[0]!).includes(mechanism)) return null;
  return `The SPF record does not include this server. Add ${mechanism} before its last term.`;
}

/** The terms in lower case, without `+`, which is the default qualifier (RFC 7208 section 4.6.2). */
function mechanismsOf(spf: string): string[] {
  return spf
    .toLowerCase()
    .split(' ')
    .map((term) => term.replace(/^\+/, ''));
}

/** RFC 7489 section 6.6.3: other TXT records are left out, and several policies are as none. */
function dmarcProblem(found: string[]): string | null {
  const policies = found.filter((text) => /^v ?= ?DMARC1( ?;|$)/.test(text));
  if (policies.length === 1) return null;
  if (policies.length > 1)
    return `There are ${policies.length} DMARC records, but only one is allowed. Remove all but one.`;
  return 'There is a record, but it does not begin with v=DMARC1.';
}
