/**
 * The types of routing. A host is one MX name with all its addresses: preference and protection belong to the name;
 * connect.ts chooses the address.
 */

import type { SessionResult } from '#mail/deliver/outcome.ts';
import type { Destination } from '#platform/values/destination-shape.ts';
import type { TlsaRecord } from '#platform/values/glossary.ts';

/** One MX as DNS has it: addresses of both families, in order of preference. */
export interface Exchanger {
  name: string;
  addresses: string[];
}

export interface Host extends Exchanger {
  tls: HostTls;
  /** Set if this host must not be used: the reason. */
  result?: SessionResult;
}

/** DANE with no records: none of those published is usable; TLS is demanded with any certificate (RFC 7672 2.2). */
export type HostTls =
  /** `isSigned`: the MX records that name the host are signed (DNSSEC). */
  (
    | { policy: 'opportunistic'; isSigned?: true }
    | { policy: 'mta-sts' }
    | { policy: 'dane'; records: TlsaRecord[] }
  ) & {
    /** A remark for the operator on how the policy was found. */
    note?: string;
    /** The domain's MTA-STS policy, also in mode `testing`: its lines, and whether it names the host. */
    sts?: { text: string[]; isNamed: boolean };
    /** Why the domain's MTA-STS policy is not known, although the domain says that it has one. */
    stsProblem?: string;
  };

/** Hosts in order of preference; those of equal preference in a new random order each time. */
export type Route = { destination: Destination } & ({ hosts: Host[] } | { result: SessionResult });

export interface Routes {
  /** Never rejects. */
  find(domain: string): Promise<Route>;
  /** The cached route; null if `find` would have to look it up. */
  peek(domain: string): Route | null;
  /** Makes the next `find` look the domain up again. */
  forget(domain: string): void;
  /** The shaping rules have changed: the cached routes get the destinations that they give now. */
  reshape(): void;
}

/** Adds its protection to each host. Never rejects. */
export type Protect = (domain: string, hosts: Exchanger[]) => Promise<Host[]>;
