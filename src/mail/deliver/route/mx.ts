/**
 * Finds the mail hosts of a recipient domain, by preference, each with its addresses.
 *
 * The steps are mx-connect's: MX records by preference, the domain's own A and AAAA if it has none (RFC 5321 section 5.1),
 * null MX (RFC 7505), private and special addresses refused unless allowed. DNS has three answers: hosts, none, unknown.
 * All three are return values, never exceptions.
 */

import type { SessionResult } from '#mail/deliver/outcome.ts';
import type { Resolve } from '#platform/base/net/resolve.ts';
import {
  addressRules,
  formatAddress,
  isForbidden,
  type MxDelivery,
  resolveIP,
  resolveMX,
} from '#platform/vendor/mx-connect.ts';
import type { Exchanger } from './route.ts';
import { interleaved, shuffled } from './shuffle.ts';

interface RankedHost extends Exchanger {
  /** Lower is better. */
  preference: number;
}

/** `names`: all MX names, even without a usable address, so that the set is the same if one look-up fails. */
export type Mx = { names: string[]; hosts: RankedHost[] } | { result: SessionResult };

/** RFC 5321 section 5.1 allows a limit; real domains stay below it. */
const maxHosts = 8;
const maxAddresses = 8;

export interface MxOptions {
  resolve: Resolve;
  allowPrivate: boolean;
  random: () => number;
}

export async function findMx(domain: string, options: MxOptions): Promise<Mx> {
  const delivery: MxDelivery = {
    domain,
    mx: [],
    blockedAddresses: [],
    dnsOptions: { resolveRecords: options.resolve, ...addressRules(true) },
    mtaSts: { logger: () => {} },
  };
  try {
    await formatAddress(delivery);
    await resolveMX(delivery);
    // If the domain has no MX record, that step finds its A records but not its AAAA records. The next step looks up both and
    // checks every address.
    delivery.mx = bestOf(delivery.mx).map((mx) => ({ ...mx, A: [], AAAA: [] }));
    delivery.dnsOptions = { ...delivery.dnsOptions, ...addressRules(options.allowPrivate) };
    await resolveIP(delivery);
    if (!options.allowPrivate) leaveOutForbidden(delivery);
    return found(delivery, options.random);
  } catch (error) {
    return { result: await resultOf(error as MxError, delivery, options.resolve) };
  }
}

/** Addresses that resolveIP allows and isForbidden does not. Throws when no other address is left. */
function leaveOutForbidden(delivery: MxDelivery): void {
  const forbidden = delivery.mx
    .flatMap(({ A, AAAA }) => [...A, ...AAAA])
    .filter((ip) => isForbidden(ip, false));
  if (forbidden.length === 0) return;
  const others = (ips: string[]) => ips.filter((ip) => !forbidden.includes(ip));
  delivery.mx = delivery.mx.map((mx) => ({ ...mx, A: others(mx.A), AAAA: others(mx.AAAA) }));
  delivery.blockedAddresses.push(...forbidden);
  if (delivery.mx.every(({ A, AAAA }) => A.length + AAAA.length === 0))
    throw new Error(`${delivery.domain} is at ${forbidden.join(', ')}, a private or special address`);
}

/** Each name once, at its best preference. Equals are in alphabetical order, so that the set is always the same. */
function bestOf(mx: MxDelivery['mx']): MxDelivery['mx'] {
  const byName = new Map<string, MxDelivery['mx'][number]>();
  for (const one of mx) {
    const name = one.exchange.toLowerCase();
    const known = byName.get(name);
    if (!known || one.priority < known.priority) byName.set(name, { ...one, exchange: name });
  }
  return [...byName.values()]
    .sort((a, b) => a.priority - b.priority || (a.exchange < b.exchange ? -1 : 1))
    .slice(0, maxHosts);
}

function found(delivery: MxDelivery, random: () => number): Mx {
  const hosts = delivery.mx.map(({ exchange, priority, A, AAAA }) => ({
    name: exchange,
    preference: priority,
    addresses: [...new Set(interleaved(shuffled(AAAA, random), shuffled(A, random)))].slice(0, maxAddresses),
  }));
  return {
    names: hosts.map(({ name }) => name),
    hosts: hosts.filter(({ addresses }) => addresses.length > 0),
  };
}

type MxError = Error & { code?: string; temporary?: boolean; exchange?: string };

async function resultOf(error: MxError, delivery: MxDelivery, resolve: Resolve): Promise<SessionResult> {
  const { domain } = delivery;
  const detail = error.message;
  if (error.code === 'ENULLMX') return { kind: 'null-mx', detail };
  if (delivery.blockedAddresses.length > 0) return { kind: 'private-address', detail };
  if (error.temporary) {
    const name = error.exchange ?? domain;
    if (await isResolverSilent(error, resolve)) {
      const text = `our DNS resolver does not answer: ${failureOf(error)} for ${name}`;
      return { kind: 'resolver-failed', detail: text };
    }
    return { kind: 'dns-failed', detail: `${failureOf(error)} from the name servers of ${name}` };
  }
  // MX records whose hosts do not resolve are as often a passing mistake as a dead domain: unknown.
  if (delivery.mx.length > 0)
    return { kind: 'dns-failed', detail: `no mail host of ${domain} has an address in DNS` };
  return {
    kind: 'no-mail-host',
    detail: `${domain} takes no mail: it does not exist, or has neither MX nor address records`,
  };
}

/** A dead resolver, or a resolver that works and gets no answer from the name servers of one domain. */
const noReply = new Set(['ECONNREFUSED', 'ETIMEOUT', 'EREFUSED']);

/** Asked for the root's name servers, which a resolver always knows. */
async function isResolverSilent({ code = '' }: MxError, resolve: Resolve): Promise<boolean> {
  if (!noReply.has(code)) return false;
  return resolve('.', 'NS').then(
    () => false,
    (error: MxError) => noReply.has(error.code ?? ''),
  );
}

const failures: Record<string, string> = {
  ECONNREFUSED: 'connection refused',
  ETIMEOUT: 'no answer in time',
};

/** The name of the response code (RFC 1035 section 4.1.1), such as SERVFAIL. */
function failureOf({ code = 'DNS failure' }: MxError): string {
  return failures[code] ?? code.replace(/^E(?=[A-Z]+$)/, '');
}
