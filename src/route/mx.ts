/**
 * From a recipient domain to the hosts that take its mail, best first, each with its addresses.
 *
 * The steps are mx-connect's: MX records by preference, the domain's own A or AAAA where it has none (RFC 5321
 * section 5.1), null MX (RFC 7505), addresses of private and special networks refused unless allowed. DNS has three
 * answers, not two: hosts, none, don't know; they come back as a Route, never as an exception.
 */
import type { Ending } from '../outcome.ts';
import { formatAddress, type MxDelivery, resolveIP, resolveMX } from './mx-connect.ts';
import type { Resolve } from './resolver.ts';

/** One address of one host. Hosts come by preference, and a host's addresses together. */
export interface Host {
  name: string;
  address: string;
}

type Route = { hosts: Host[] } | { ending: Ending };

export type FindRoute = (domain: string) => Promise<Route>;

/** More addresses than this are not tried for one delivery. */
const mostHosts = 20;

export function createFindRoute(resolve: Resolve, allowPrivate: boolean): FindRoute {
  return async (domain) => {
    const delivery: MxDelivery = {
      domain,
      mx: [],
      blockedAddresses: [],
      dnsOptions: {
        resolveRecords: resolve,
        blockLocalAddresses: !allowPrivate,
        blockReservedNetworks: !allowPrivate,
      },
      mtaSts: { logger: () => {} },
    };
    try {
      await formatAddress(delivery);
      await resolveMX(delivery);
      await resolveIP(delivery);
      return { hosts: hostsOf(delivery) };
    } catch (error) {
      return { ending: endingOf(error as RouteError, delivery) };
    }
  };
}

function hostsOf(delivery: MxDelivery): Host[] {
  const seen = new Set<string>();
  return delivery.mx
    .flatMap((mx) => [...mx.A, ...mx.AAAA].map((address) => ({ name: mx.exchange, address })))
    .filter(({ address }) => !seen.has(address) && seen.add(address))
    .slice(0, mostHosts);
}

type RouteError = Error & { code?: string; temporary?: boolean; category?: string };

function endingOf(error: RouteError, delivery: MxDelivery): Ending {
  const detail = error.message;
  if (error.code === 'ENULLMX') return { kind: 'null-mx', detail };
  if (delivery.blockedAddresses.length > 0) return { kind: 'private-address', detail };
  // MX records whose names lead nowhere are somebody's mistake of the hour as often as a dead domain: doubt.
  if (error.temporary || delivery.mx.length > 0) return { kind: 'dns-failed', detail };
  return {
    kind: 'no-mail-host',
    detail: `${delivery.domain} takes no mail: it does not exist, or has neither MX nor address records`,
  };
}
