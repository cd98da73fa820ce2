/** Sender domains: DKIM keys, the DNS records to publish, and the TLS that a domain's mail requires. */
import { generateKeyPair, randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import type { DkimAlgorithm, DkimKeyRecord } from '#accounts/rows/dkim-keys.ts';
import { returnPathOf } from '#accounts/rows/return-paths.ts';
import { iso } from '#platform/base/clock.ts';
import type { MailTls, TlsFloor } from '#platform/values/glossary.ts';
import { ownSpf } from './return-path-record.ts';

export const recordPurposes = [
  'dkim',
  'return_path',
  'dmarc',
  'dmarc_reports',
  'tracking',
  'receiving',
] as const;

export type RecordPurpose = (typeof recordPurposes)[number];

export interface DnsRecord {
  type: 'TXT' | 'MX' | 'CNAME';
  name: string;
  value: string;
  purpose: RecordPurpose;
  /** The purpose of the record, and what to do about an existing one. */
  note: string;
  required: boolean;
}

export interface DkimKey {
  selector: string;
  privateKey: string;
  /** Base64 as in the DNS record: DER for RSA, the 32 raw bytes for Ed25519 (RFC 8463 section 4). */
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
  /** The port on which mail comes in; null or absent if none does. */
  inboundPort?: number | null;
}

export function recordsFor(
  domain: {
    name: string;
    dkimSelector: string;
    dkimPublicKey: string;
    otherKeys?: DkimKeyRecord[];
    trackingHost?: string | null;
    receives?: boolean;
  },
  { hostname, returnPathDomain, inboundPort = null }: Names,
): DnsRecord[] {
  const takesMail = inboundPort !== null;
  return [
    {
      type: 'TXT',
      ...dkimNameAndValue(domain.name, domain.dkimSelector, 'rsa', domain.dkimPublicKey),
      purpose: 'dkim',
      note: 'Proves that the mail is yours. You can send when this record is found.',
      required: true,
    },
    ...(domain.otherKeys ?? []).map((key) => dkimRecord(domain.name, key)),
    ...returnPathRecord(domain.name, hostname, returnPathDomain),
    {
      type: 'TXT',
      name: `_dmarc.${domain.name}`,
      value: `v=DMARC1; p=none${takesMail ? `; rua=mailto:dmarc@${returnPathDomain}` : ''}`,
      purpose: 'dmarc',
      note: 'The large mailbox providers require a DMARC record. Change it to p=quarantine when all your mail is signed.',
      required: false,
    },
    ...(takesMail ? [reportsRecord(domain.name, returnPathDomain)] : []),
    ...(domain.trackingHost ? [trackingRecord(domain.trackingHost, hostname)] : []),
    ...(takesMail && domain.receives ? [receivingRecord(domain.name, hostname)] : []),
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

/** SPF is evaluated for the return path, and counts for DMARC only under the sender's own domain (RFC 7489 section 3.1.2). */
function returnPathRecord(domain: string, hostname: string, returnPathDomain: string): DnsRecord[] {
  const name = returnPathOf(domain);
  if (name === null) return [];
  const note = `Gives the mail a return path under the domain, so that SPF counts for it and DMARC passes twice. If the name cannot be a CNAME, publish two records there instead: MX 10 ${hostname}, and TXT ${ownSpf(returnPathDomain)}`;
  return [{ type: 'CNAME', name, value: returnPathDomain, purpose: 'return_path', note, required: false }];
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

function receivingRecord(name: string, hostname: string): DnsRecord {
  return {
    type: 'MX',
    name,
    value: `10 ${hostname}`,
    purpose: 'receiving',
    note: `Brings all mail for ${name} to this server. If people have mailboxes at this domain, receive at a subdomain instead, and leave their MX record alone.`,
    required: false,
  };
}
