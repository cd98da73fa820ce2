/**
 * The addresses from which other hosts see our mail come; PTR, SPF and blocklists are about these. Found by connecting to
 * port 25 of large providers from each source address: their replies to EHLO usually contain the address that they see.
 *
 * Otherwise it is the local address of the connection, if that is public; else (behind a NAT, or without a network) the
 * address that the EHLO name resolves to.
 */
import { isIPv6 } from 'node:net';
import { findMx } from '#mail/deliver/route/mx.ts';
import { isPublicAddress } from '#platform/base/net/client-network.ts';
import type { Config } from '#platform/settings/config.ts';
import { isSameAddress } from '#platform/values/reverse-name.ts';
import type { Dns } from './doctor-dns.ts';
import { readGreeting, type SmtpGreeting } from './smtp-greeting.ts';
import type { Surroundings } from './surroundings.ts';

/** A source of our connections, of one address family. */
export interface Origin {
  /** Undefined: the system chooses. */
  from: string | undefined;
  family: 4 | 6;
  /** The EHLO name. */
  name: string;
}

export interface ProbeResult extends SmtpGreeting {
  host: string;
  address: string;
}

/** An address that others see, and our EHLO name there. */
export interface SendingAddress {
  address: string;
  name: string;
}

type SenderConfig = Pick<Config, 'hostname' | 'mtaSources' | 'mtaPort' | 'mtaAllowPrivate'>;

export function originsOf({ hostname, mtaSources }: SenderConfig): Origin[] {
  if (mtaSources.length === 0)
    return ([4, 6] as const).map((family) => ({ from: undefined, family, name: hostname }));
  return mtaSources.map(({ address, name }) => ({
    from: address,
    family: isIPv6(address) ? 6 : 4,
    name: name ?? hostname,
  }));
}

/** Connects to one address of the family of each probe domain. Throws Unanswered if no DNS server answers. */
export async function probeFrom(
  { from, family, name }: Origin,
  { config, dns, surroundings }: { config: SenderConfig; dns: Dns; surroundings: Surroundings },
): Promise<ProbeResult[]> {
  const { probes, timeouts } = surroundings;
  await dns.resolve(probes[0]!, 'MX').catch((error) => {
    if (error.noServerAnswers) throw error;
  });
  const results = probes.map(async (probe): Promise<ProbeResult[]> => {
    const options = { resolve: dns.resolve, allowPrivate: config.mtaAllowPrivate, random: () => 0 };
    const found = await findMx(probe, options);
    if ('result' in found) return [];
    const targets = found.hosts.flatMap((host) =>
      host.addresses.map((address) => ({ host: host.name, address })),
    );
    const target = targets.find(({ address }) => isIPv6(address) === (family === 6));
    if (!target) return [];
    const call = { address: target.address, port: config.mtaPort, from, timeoutMs: timeouts.connect };
    return [{ ...target, ...(await readGreeting(call, name, timeouts.greeting)) }];
  });
  return (await Promise.all(results)).flat();
}

export async function sendingAddressesOf(
  origins: { origin: Origin; results: Promise<ProbeResult[]> }[],
  { config, dns }: { config: SenderConfig; dns: Dns },
): Promise<SendingAddress[]> {
  const known = await Promise.all(
    origins.map(async ({ origin, results }) => {
      const probed = await results.catch((): ProbeResult[] => []);
      return { origin, address: seenAddress(origin, probed, config) };
    }),
  );
  const addresses = await Promise.all(
    known.map(async ({ origin, address }) => {
      if (address !== null) return [address];
      // Without configured sources, a family that reaches no host sends nothing as long as the other one does.
      if (origin.from === undefined && known.some((other) => other.address !== null)) return [];
      const published = await dns.addresses(origin.name).catch((): string[] => []);
      return published.filter((one) => isIPv6(one) === (origin.family === 6));
    }),
  );
  const senders = known.flatMap(({ origin: { name } }, at) =>
    addresses[at]!.map((address) => ({ address, name })),
  );
  return senders.filter(
    ({ address }, at) => senders.findIndex((one) => isSameAddress(one.address, address)) === at,
  );
}

function seenAddress(
  { from, family }: Origin,
  results: ProbeResult[],
  { mtaAllowPrivate }: SenderConfig,
): string | null {
  const candidates = [
    ...results.map(({ seesUs }) => seesUs),
    from,
    ...results.map(({ localAddress }) => localAddress),
  ];
  const usable = candidates.find(
    (one) => one && isIPv6(one) === (family === 6) && (mtaAllowPrivate || isPublicAddress(one)),
  );
  return usable ?? null;
}
