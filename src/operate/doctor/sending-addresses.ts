/**
 * Who we are to the hosts that take our mail: the knocks at their port 25, from each of our addresses, and the
 * addresses that they see us at, which are what PTR, SPF and blocklists are about.
 *
 * Where the hosts do not say, our own end of the connection does, if it is public; where that is not either (behind a
 * NAT, or without a network), what the EHLO name resolves to is taken for it.
 */
import { isIPv6 } from 'node:net';
import type { Config } from '../../config.ts';
import { findMx } from '../../route/mx.ts';
import { isForbidden } from '../../vendor/mx-connect.ts';
import type { Dns } from './doctor-dns.ts';
import { isSame } from './reverse-name.ts';
import { type GreetingTimes, talkTo } from './smtp-greeting.ts';
import type { Surroundings } from './surroundings.ts';

/** An end of ours, of one family. */
export interface Origin {
  /** Undefined: the system's choice. */
  from: string | undefined;
  family: 4 | 6;
  /** What it says in EHLO. */
  name: string;
}

export interface Knock extends GreetingTimes {
  host: string;
  address: string;
}

/** One that others see, and the name that we give there. */
export interface SendingAddress {
  address: string;
  name: string;
}

type SenderConfig = Pick<Config, 'hostname' | 'mtaSources' | 'mtaPort' | 'mtaAllowPrivate'>;

export function originsOf({ hostname, mtaSources }: SenderConfig): Origin[] {
  if (mtaSources.length === 0)
    return [4, 6].map((family) => ({ from: undefined, family: family as 4 | 6, name: hostname }));
  return mtaSources.map(({ address, name }) => ({
    from: address,
    family: isIPv6(address) ? 6 : 4,
    name: name ?? hostname,
  }));
}

/** One address of each probe that has one of the family. Throws Unanswered where no probe could be looked up. */
export async function knockFrom(
  { from, family, name }: Origin,
  { config, dns, surroundings }: { config: SenderConfig; dns: Dns; surroundings: Surroundings },
): Promise<Knock[]> {
  const { probes, patience } = surroundings;
  // Rejects where DNS says nothing at all: then there is nobody to knock at.
  await dns.resolve(probes[0]!, 'MX').catch((error) => {
    if (error.isSilence) throw error;
  });
  const knocks = probes.map(async (probe): Promise<Knock[]> => {
    const options = { resolve: dns.resolve, allowPrivate: config.mtaAllowPrivate, random: () => 0 };
    const found = await findMx(probe, options);
    if ('result' in found) return [];
    const targets = found.hosts.flatMap((host) =>
      host.addresses.map((address) => ({ host: host.name, address })),
    );
    const target = targets.find(({ address }) => isIPv6(address) === (family === 6));
    if (!target) return [];
    const call = { address: target.address, port: config.mtaPort, from, timeoutMs: patience.connect };
    return [{ ...target, ...(await talkTo(call, name, patience.talk)) }];
  });
  return (await Promise.all(knocks)).flat();
}

export async function sendersOf(
  knocked: { origin: Origin; knocks: Knock[] }[],
  { config, dns }: { config: SenderConfig; dns: Dns },
): Promise<SendingAddress[]> {
  const known = knocked.map(({ origin, knocks }) => ({ origin, address: seenAt(origin, knocks, config) }));
  const guessed = await Promise.all(
    known.map(async ({ origin, address }) => {
      if (address !== null) return [address];
      // Without sources of the operator's, a family that reaches nobody sends nothing, if the other one does.
      if (origin.from === undefined && known.some((other) => other.address !== null)) return [];
      const published = await dns.addresses(origin.name).catch((): string[] => []);
      return published.filter((one) => isIPv6(one) === (origin.family === 6));
    }),
  );
  const senders = known.flatMap(({ origin: { name } }, at) =>
    guessed[at]!.map((address) => ({ address, name })),
  );
  return senders.filter(({ address }, at) => senders.findIndex((one) => isSame(one.address, address)) === at);
}

function seenAt({ from, family }: Origin, knocks: Knock[], { mtaAllowPrivate }: SenderConfig): string | null {
  const candidates = [
    ...knocks.map(({ seesUs }) => seesUs),
    from,
    ...knocks.map(({ localAddress }) => localAddress),
  ];
  const usable = candidates.find(
    (one) => one && isIPv6(one) === (family === 6) && !isForbidden(one, mtaAllowPrivate),
  );
  return usable ?? null;
}
