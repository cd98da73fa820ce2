/**
 * DANE for SMTP (RFC 7672): finds the TLSA records of a domain's hosts, which say in signed DNS what their certificates are.
 *
 * Only signed records count: the domain's MX records (or its own address if it has none), the host's address, and its TLSA
 * records. If one of these is not signed, DANE does not apply to the host. If a look-up under a signed MX fails, that host
 * must not be used (section 2.1.2), because an attacker may have caused the failure.
 *
 * If the look-up of the MX records fails, DANE does not apply: the ordinary look-up has just passed through the same
 * resolver, and a resolver that refuses forged records would have refused them there too.
 *
 * BUGS: if a mail host is an alias, a certificate under usage 2 that is only for the target's name (section 3.2.2) is not
 * accepted, because the names are not passed on with the records.
 */
import { isIPv4 } from 'node:net';
import { normalName } from '#platform/base/net/resolve.ts';
import { withTimeout } from '#platform/base/waits.ts';
import type { TlsaRecord } from '#platform/values/glossary.ts';
import type { SecureResolve } from './dnssec.ts';
import type { Exchanger, Host } from './route.ts';

/** The protection that a host must have, or the reason why it must not be used. */
export type DaneFinding = Pick<Host, 'tls' | 'result'>;

export type Dane = (domain: string, hosts: Exchanger[]) => Promise<DaneFinding[]>;

export interface DaneParts {
  secureResolve: SecureResolve;
  /** The SMTP port; TLSA records are published for each port. */
  port: number;
  /** The time limit of the look-up of the MX records, and of all look-ups of one host together. */
  timeoutMs?: number;
}

const late = 'no answer in time';

const notDane: DaneFinding = { tls: { policy: 'opportunistic' } };
const notDaneButSigned: DaneFinding = { tls: { policy: 'opportunistic', isSigned: true } };

/** The findings are in the order of the hosts. */
export function createDane({ secureResolve, port, timeoutMs = 10_000 }: DaneParts): Dane {
  return async (domain, hosts) => {
    const lookup = secureResolve(domain, 'MX').catch((error: Error) => error);
    const mx = await withTimeout(timeoutMs, lookup, () => new Error(late));
    if (mx instanceof Error) {
      const note = `not known whether DANE protects ${domain}: ${mx.message}`;
      return hosts.map(() => ({ tls: { policy: 'opportunistic', note } }));
    }
    if (!mx.secure) return hosts.map(() => notDane);
    const signed = new Set(mx.records.map(({ exchange }) => normalName(exchange)));
    // RFC 5321 section 5.1: without MX records the domain itself is the host.
    if (signed.size === 0) signed.add(normalName(domain));
    return Promise.all(
      hosts.map(async (host) => {
        if (!signed.has(normalName(host.name))) {
          return unusable(`${host.name} is not among the mail hosts in the signed records of ${domain}`);
        }
        const findings = findingOf(host).catch((error: Error) => lookUpFailed(host.name, error.message));
        return withTimeout(timeoutMs, findings, () => lookUpFailed(host.name, late));
      }),
    );
  };

  async function findingOf(host: Exchanger): Promise<DaneFinding> {
    for (const name of await baseNames(host)) {
      const { records, secure } = await secureResolve(`_${port}._tcp.${name}`, 'TLSA');
      if (secure && records.length > 0) return daneOf(host.name, records.map(toTlsa));
    }
    return notDaneButSigned;
  }

  /**
   * The names that may have TLSA records (RFC 7672 section 2.2.2): none if the address is not signed; for an alias, first
   * its target if every record between them is signed, then the alias itself if it is signed.
   */
  async function baseNames({ name, addresses }: Exchanger): Promise<string[]> {
    const { secure, owner } = await secureResolve(name, addresses.some(isIPv4) ? 'A' : 'AAAA');
    if (secure) return [...new Set([owner, normalName(name)])];
    if (owner === normalName(name)) return [];
    const alias = await secureResolve(name, 'CNAME');
    return alias.secure ? [normalName(name)] : [];
  }
}

function toTlsa(data: {
  usage: number;
  selector: number;
  matchingType: number;
  certificate: Buffer;
}): TlsaRecord {
  return {
    usage: data.usage,
    selector: data.selector,
    matching: data.matchingType,
    // A copy, because a slice would keep the whole packet in memory.
    data: Buffer.from(data.certificate),
  };
}

/** RFC 7672 section 2.2: if no record is usable, they still say that the host supports TLS. */
function daneOf(host: string, records: TlsaRecord[]): DaneFinding {
  const usable = records.filter(isUsable);
  if (usable.length > 0) return { tls: { policy: 'dane', records: usable } };
  const note = `none of the TLSA records of ${host} can be used for SMTP: TLS is required, with any certificate`;
  return { tls: { policy: 'dane', records: [], note } };
}

/** Bytes of the data for each matching type (RFC 6698 section 2.1.3): any number, SHA-256, SHA-512. */
const lengths = [null, 32, 64];

/** RFC 7672 section 3.1.3: SMTP does not use the usages 0 and 1, which depend on public authorities. */
function isUsable({ usage, selector, matching, data }: TlsaRecord): boolean {
  const length = lengths[matching];
  if (length === undefined) return false;
  return (
    (usage === 2 || usage === 3) &&
    (selector === 0 || selector === 1) &&
    (length === null ? data.length > 0 : data.length === length)
  );
}

function lookUpFailed(host: string, reason: string): DaneFinding {
  return unusable(`the TLSA records of ${host} could not be looked up: ${reason}`);
}

function unusable(detail: string): DaneFinding {
  return { tls: { policy: 'opportunistic' }, result: { kind: 'dns-failed', detail } };
}
