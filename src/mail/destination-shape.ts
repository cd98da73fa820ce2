/**
 * A destination's shape: how much it may be asked at once. The adaptive part (queue/shaping.ts) moves within it; the
 * shaping file says where it differs from the usual.
 *
 * A destination is a set of MX hosts: all domains with the same hosts share one. A rule of the shaping file may draw
 * several sets together (all of a provider's) or set one domain apart.
 */
import type { TlsFloor } from '../glossary.ts';

export interface DestinationShape {
  /** Connections at once at most, idle ones included. */
  connections: number;
  /** How many to begin with. */
  startWith: number;
  /** Deliveries begun a minute at most, spread evenly; null: no such limit. */
  perMinute: number | null;
  /** Mails over one connection, then a new one. */
  mailsPerConnection: number;
  /** How long a connection waits for its next mail, in milliseconds. */
  idleMs: number;
  /** The least protection this destination gets, whatever the sender says; 'off' never tries STARTTLS. */
  tls: TlsFloor | 'off';
}

export interface Destination {
  /** What operators call it: its hosts' names, sorted and joined by commas, or what a shaping rule says. */
  name: string;
  shape: DestinationShape;
}

/** Which destination serves a domain whose mail these hosts take (for a domain without any: the domain itself). */
export type DestinationOf = (domain: string, hosts: string[]) => Destination;
