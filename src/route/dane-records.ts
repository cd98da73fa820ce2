/**
 * DANE for SMTP (RFC 7672): which of a domain's hosts have published in signed DNS what their certificates are.
 *
 * Only signed records count: the domain's MX records (or, where it has none, its own address), the host's address,
 * and its TLSA records. Where one of these is not signed the host is as any other. Where the look-up of something
 * under a signed MX fails, that host must not be used (section 2.1.2), since the failure may be somebody's doing.
 *
 * A failing look-up of the MX records themselves ends nothing here: the ordinary look-up has just passed through the
 * same resolver, and one that refuses forged records would have refused them there too.
 *
 * BUGS: where a mail host is an alias, a certificate under usage 2 that bears only the target's name (section 3.2.2)
 * is not known as such: the names are not handed over with the records.
 */
import { isIPv4 } from 'node:net';
import { withTimeout } from '../base/with-timeout.ts';
import type { TlsaRecord } from '../glossary.ts';
import { normal, type SecureResolve } from './dnssec.ts';
import type { Host } from './route.ts';

/** What DANE says of one host: how it is to be protected, or why it must not be used. */
export type DaneFinding = Pick<Host, 'tls' | 'result'>;

export type Dane = (domain: string, hosts: { name: string; addresses: string[] }[]) => Promise<DaneFinding[]>;

export interface DaneParts {
  secureResolve: SecureResolve;
  /** The port delivered to: TLSA records are published for one. */
  port: number;
  /** How long the look-up of the MX records may take, and after it all those for one host. */
  timeoutMs?: number;
}

const late = 'no answer in time';

const notDane: DaneFinding = { tls: { policy: 'opportunistic' } };

/** The findings come in the order of the hosts. */
export function createDane({ secureResolve, port, timeoutMs = 10_000 }: DaneParts): Dane {
  return async (domain, hosts) => {
    const looking = secureResolve(domain, 'MX').catch((error: Error) => error);
    const mx = await withTimeout(timeoutMs, looking, () => new Error(late));
    if (mx instanceof Error) {
      const note = `not known whether DANE protects ${domain}: ${mx.message}`;
      return hosts.map(() => ({ tls: { policy: 'opportunistic', note } }));
    }
    if (!mx.secure) return hosts.map(() => notDane);
    const signed = new Set(mx.records.map(({ exchange }) => normal(exchange)));
    // RFC 5321 section 5.1: without MX records the domain itself is the host.
    if (signed.size === 0) signed.add(normal(domain));
    return Promise.all(
      hosts.map(async (host) => {
        if (!signed.has(normal(host.name))) {
          return unusable(`${host.name} is not among the mail hosts in the signed records of ${domain}`);
        }
        const findings = findingOf(host).catch((error: Error) => lookUpFailed(host.name, error.message));
        return withTimeout(timeoutMs, findings, () => lookUpFailed(host.name, late));
      }),
    );
  };

  async function findingOf(host: { name: string; addresses: string[] }): Promise<DaneFinding> {
    for (const name of await baseNames(host)) {
      const { records, secure } = await secureResolve(`_${port}._tcp.${name}`, 'TLSA');
      if (secure && records.length > 0) return daneOf(host.name, records.map(toTlsa));
    }
    return notDane;
  }

  /**
   * The names that TLSA records may be at (RFC 7672 section 2.2.2): none where the address is not signed; for an
   * alias its target first, if it is signed all the way, and then the alias itself, if that is signed.
   */
  async function baseNames({ name, addresses }: { name: string; addresses: string[] }): Promise<string[]> {
    const { secure, owner } = await secureResolve(name, addresses.some(isIPv4) ? 'A' : 'AAAA');
    if (secure) return [...new Set([owner, normal(name)])];
    if (owner === normal(name)) return [];
    const alias = await secureResolve(name, 'CNAME');
    return alias.secure ? [normal(name)] : [];
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
    // A copy: the slice would keep the whole packet.
    data: Buffer.from(data.certificate),
  };
}

/** RFC 7672 section 2.2: records of no use to us still say that the host speaks TLS; then none is handed over. */
function daneOf(host: string, records: TlsaRecord[]): DaneFinding {
  const usable = records.filter(isUsable);
  if (usable.length > 0) return { tls: { policy: 'dane', records: usable } };
  const note = `none of the TLSA records of ${host} is of a kind that SMTP uses: TLS is demanded, whoever it is`;
  return { tls: { policy: 'dane', records: [], note } };
}

/** The length of the data by the matching type (RFC 6698 section 2.1.3): anything, SHA-256, SHA-512. */
const lengths = [null, 32, 64];

/** RFC 7672 section 3.1.3: SMTP has no use for the usages 0 and 1, which ask for the public authorities. */
function isUsable({ usage, selector, matching, data }: TlsaRecord): boolean {
  const length = lengths[matching];
  if (length === undefined) return false;
  return (
    (usage === 2 || usage === 3) &&
    (selector === 0 || selector === 1) &&
    (length === null ? data.length > 0 : data.length === length)
  );
}

function lookUpFailed(host: string, trouble: string): DaneFinding {
  return unusable(`the TLSA records of ${host} could not be looked up: ${trouble}`);
}

function unusable(detail: string): DaneFinding {
  return { tls: { policy: 'opportunistic' }, result: { kind: 'dns-failed', detail } };
}
