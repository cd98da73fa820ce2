/**
 * A destination's shape: the limits on connections and deliveries to it. mail/queue/shaping.ts adapts within them; rules in the
 * shaping file change the defaults.
 *
 * A destination is a set of MX hosts; all domains with the same hosts share one. A rule of the shaping file may join
 * several sets (all those of a provider) or separate one domain.
 */
import type { TlsFloor } from './glossary.ts';

export interface DestinationShape {
  /** Maximum of concurrent connections, idle ones included. */
  connections: number;
  /** Connections to begin with. */
  startWith: number;
  /** Maximum of deliveries started per minute, spread evenly; null means no limit. */
  perMinute: number | null;
  /** Mails sent over a connection before it is replaced. */
  mailsPerConnection: number;
  /** How long a connection waits for its next mail, in milliseconds. */
  idleMs: number;
  /** Minimum protection for this destination, whatever the sender requests; 'off' never tries STARTTLS. */
  tls: TlsFloor | 'off';
}

export interface Destination {
  /** The names of its hosts, sorted and joined by commas, or the name that a shaping rule gives it. */
  name: string;
  shape: DestinationShape;
}

/** The destination of a domain with these hosts. A domain without hosts is a destination of its own. */
export type DestinationOf = (domain: string, hosts: string[]) => Destination;
