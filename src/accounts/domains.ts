/**
 * Sender domains: DKIM keys, the DNS records to publish, the check of what is published, and the TLS that a domain's mail
 * requires. A domain is verified if its DKIM record has our public key. The other records are recommended and are checked, too.
 */
import { generateKeyPair, randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import { iso } from '../base/clock.ts';
import type { DkimAlgorithm, DkimKeyRecord } from '../db/accounts/dkim-keys.ts';
import type { MailTls, TlsFloor } from '../glossary.ts';

export type RecordPurpose = 'dkim' | 'spf' | 'return_path' | 'dmarc' | 'dmarc_reports' | 'tracking';

export interface DnsRecord {
  type: 'TXT' | 'MX' | 'CNAME';
  name: string;
  value: string;
  purpose: RecordPurpose;
  /** The purpose of the record, and what to do about an existing one. */
  note: string;
  required: boolean;
}

export interface CheckedRecord extends DnsRecord {
  ok: boolean;
  /** The records in DNS; the reason if the lookup failed. */
  found: string[];
}

export type Resolve = (name: string, type?: string) => Promise<unknown[]>;

export interface DkimKey {
  selector: string;
  privateKey: string;
  /** Base64 as in the DNS record: DER for RSA, the 32 raw octets for Ed25519 (RFC 8463 section 4). */
  publicKey: string;
}

/** From the least strict to the strictest. */
export const tlsFloors = ['opportunistic', 'encrypted', 'verified'] as const satisfies TlsFloor[];

/** The stricter of the domain's and its organization's TLS setting. */
export function demandedTls(domain: { tls: TlsFloor; organizationTls: TlsFloor }): TlsFloor {
  const strictness = Math.max(...[domain.tls, domain.organizationTls].map((tls) => tlsFloors.indexOf(tls)));
  return tlsFloors[strictness]!;
}

/** `required`: what the mail says on TLS (RFC 8689). It cannot lower what its domain or organization demands. */
export function mailTls(floor: TlsFloor, required: boolean | undefined): MailTls {
  if (required) return 'requiretls';
  return required === false && floor === 'opportunistic' ? 'not-required' : floor;
}

/** RSA-2048 (RFC 8301 section 3.2) or Ed25519, with a random selector that no other service of the domain uses. */
export async function newDkimKey(algorithm: DkimAlgorithm = 'rsa'): Promise<DkimKey> {
  const { privateKey, publicKey } =
    algorithm === 'rsa'
      ? await promisify(generateKeyPair)('rsa', { modulusLength: 2048 })
      : await promisify(generateKeyPair)('ed25519', undefined);
  const der = publicKey.export({ type: 'spki', format: 'der' });
  return {
    selector: `pstn${randomBytes(4).toString('hex')}`,
    privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
    publicKey: (algorithm === 'rsa' ? der : der.subarray(-32)).toString('base64'),
  };
}

export interface Names {
  hostname: string;
  returnPathDomain: string;
  /** The port on which DMARC reports are received; null or absent if none are. */
  inboundPort?: number | null;
}

export function recordsFor(
  domain: {
    name: string;
    dkimSelector: string;
    dkimPublicKey: string;
    otherKeys?: DkimKeyRecord[];
    trackingHost?: string | null;
  },
  { hostname, returnPathDomain, inboundPort = null }: Names,
): DnsRecord[] {
  const takesReports = inboundPort !== null;
  return [
    {
      type: 'TXT',
      ...dkimNameAndValue(domain.name, domain.dkimSelector, 'rsa', domain.dkimPublicKey),
      purpose: 'dkim',
      note: 'Proves that the mail is yours. You can send when this record is found.',
      required: true,
    },
    ...(domain.otherKeys ?? []).map((key) => dkimRecord(domain.name, key)),
    {
      type: 'TXT',
      name: domain.name,
      value: `v=spf1 a:${hostname} ~all`,
      purpose: 'spf',
      note: `Allows ${hostname} to send for the domain. If the domain already has an SPF record, add a:${hostname} to that record: only one is allowed.`,
      required: false,
    },
    {
      type: 'MX',
      name: returnPathDomain,
      value: `10 ${hostname}`,
      purpose: 'return_path',
      note: 'Brings bounces back to this server. One record serves all domains.',
      required: false,
    },
    {
      type: 'TXT',
      name: `_dmarc.${domain.name}`,
      value: `v=DMARC1; p=none${takesReports ? `; rua=mailto:dmarc@${returnPathDomain}` : ''}`,
      purpose: 'dmarc',
      note: 'The large mailbox providers require a DMARC record. Change it to p=quarantine when all your mail is signed.',
      required: false,
    },
    ...(takesReports ? [reportsRecord(domain.name, returnPathDomain)] : []),
    ...(domain.trackingHost ? [trackingRecord(domain.trackingHost, hostname)] : []),
  ];
}

/** All keys of a domain; the first is the RSA key that signs all mail. */
export function dkimKeys(domain: { dkimSelector: string; otherKeys: DkimKeyRecord[] }) {
  const main = {
    selector: domain.dkimSelector,
    algorithm: 'rsa',
    status: 'signing',
    keepUntil: null,
  } as const;
  return [
    main,
    ...domain.otherKeys.map(({ selector, algorithm, status, keepUntil }) => {
      return { selector, algorithm, status, keepUntil };
    }),
  ];
}

/** The record of an additional key. */
export function dkimRecord(name: string, key: DkimKeyRecord): DnsRecord {
  return {
    type: 'TXT',
    ...dkimNameAndValue(name, key.selector, key.algorithm, key.publicKey),
    purpose: 'dkim',
    note: noteOn(key),
    required: false,
  };
}

function dkimNameAndValue(name: string, selector: string, algorithm: DkimAlgorithm, publicKey: string) {
  return { name: `${selector}._domainkey.${name}`, value: `v=DKIM1; k=${algorithm}; p=${publicKey}` };
}

function noteOn({ status, algorithm, keepUntil }: DkimKeyRecord): string {
  const addition = algorithm === 'ed25519' ? ' in addition to RSA (RFC 8463)' : '';
  switch (status) {
    case 'pending':
      return `The next key: mail is signed with it${addition} as soon as this record is found.`;
    case 'signing':
      return `Mail is signed with it${addition}.`;
    case 'retired':
      return `Retired. Keep this record until ${iso(keepUntil!)}, for mail that is still on its way; then remove it.`;
  }
}

/** RFC 7489 section 7.1: a domain that receives reports about another domain must publish its consent. */
function reportsRecord(name: string, returnPathDomain: string): DnsRecord {
  return {
    type: 'TXT',
    name: `${name}._report._dmarc.${returnPathDomain}`,
    value: 'v=DMARC1',
    purpose: 'dmarc_reports',
    note: 'Allows DMARC reports on the domain to be sent to this server. With * instead of the domain, one record serves all domains.',
    required: false,
  };
}

function trackingRecord(host: string, hostname: string): DnsRecord {
  return {
    type: 'CNAME',
    name: host,
    value: hostname,
    purpose: 'tracking',
    note: `Points tracking links under your own name to this server. They begin with https://${host}/, so the web server in front of Postern needs a certificate for that name.`,
    required: false,
  };
}

const noAnswer = 'look-up failed: ';

export async function checkRecords(records: DnsRecord[], resolve: Resolve): Promise<CheckedRecord[]> {
  return Promise.all(
    records.map(async (record) => {
      try {
        const found = (await resolve(record.name, record.type)).map(printed);
        return { ...record, ok: found.some((value) => satisfies(record, value)), found };
      } catch (error) {
        const code = (error as NodeJS.ErrnoException).code;
        const nothing = code === 'ENODATA' || code === 'ENOTFOUND';
        return { ...record, ok: false, found: nothing ? [] : [`${noAnswer}${code}`] };
      }
    }),
  );
}

function isVerified(records: CheckedRecord[]): boolean {
  return records.every(({ ok, required }) => ok || !required);
}

/** DNS gave no answer (SERVFAIL, a timeout), so it is unknown whether the record exists. */
export function isUnknown({ ok, found }: CheckedRecord): boolean {
  return !ok && found.length === 1 && found[0]!.startsWith(noAnswer);
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

function satisfies(record: DnsRecord, found: string): boolean {
  const squeezed = found.replace(/\s+/g, ' ').trim();
  switch (record.purpose) {
    case 'dkim':
      return dkimTag(found, 'p') === dkimTag(record.value, 'p');
    case 'spf': {
      const mechanism = record.value.split(' ')[1]!;
      return /^v=spf1( |$)/i.test(squeezed) && mechanismsOf(squeezed).includes(mechanism);
    }
    case 'return_path':
      return squeezed.split(' ')[1]?.replace(/\.$/, '').toLowerCase() === record.value.split(' ')[1];
    case 'tracking':
      return squeezed.replace(/\.$/, '').toLowerCase() === record.value;
    case 'dmarc':
    case 'dmarc_reports':
      return /^v=DMARC1\b/i.test(squeezed);
  }
}

/** The terms in lower case, without `+`, which is the default qualifier (RFC 7208 section 4.6.2). */
function mechanismsOf(spf: string): string[] {
  return spf
    .toLowerCase()
    .split(' ')
    .map((term) => term.replace(/^\+/, ''));
}

/** A tag of a DKIM record (RFC 6376 section 3.2), without white space, which may be anywhere in the value. */
function dkimTag(record: string, tag: string): string | undefined {
  const tags = record.split(';').map((part) => part.split('='));
  const found = tags.find(([name]) => name!.trim() === tag);
  return found?.slice(1).join('=').replace(/\s+/g, '');
}
