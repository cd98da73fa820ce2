/**
 * The words of the way to a destination, as types. A host is one MX name with all its addresses: what is preferred,
 * protected and greeted is the name; which of its addresses answers is the business of connect.ts.
 */
import type { TlsaRecord } from '../glossary.ts';
import type { Destination } from '../mail/destination-shape.ts';
import type { SessionResult } from '../outcome.ts';

/** What DNS says of one MX: addresses of both families, best guess first. */
export interface Exchanger {
  name: string;
  addresses: string[];
}

export interface Host extends Exchanger {
  tls: HostTls;
  /** This host must not be used, and why. */
  result?: SessionResult;
}

/** DANE without records: there are some, none of use to us; TLS is demanded whatever the certificate (RFC 7672 2.2). */
export type HostTls = (
  | { policy: 'opportunistic' }
  | { policy: 'mta-sts' }
  | { policy: 'dane'; records: TlsaRecord[] }
) & {
  /** What an operator may want to know of how the policy was come by. */
  note?: string;
};

/** Hosts come best first; those of equal preference in an order that is new each time. */
export type Route = { destination: Destination } & ({ hosts: Host[] } | { result: SessionResult });

export interface Routes {
  /** Never rejects. */
  find(domain: string): Promise<Route>;
  /** What `find` would say at once; null where it would have to ask. */
  peek(domain: string): Route | null;
  /** The next `find` asks anew. */
  forget(domain: string): void;
}

/** Which protection each host gets, or why the domain cannot be reached under its policy. */
export type Protect = (domain: string, hosts: Exchanger[]) => Promise<Host[] | { result: SessionResult }>;
