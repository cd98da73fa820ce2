/**
 * Our own look at a host's DNS before the authority is asked for it: a host that leads elsewhere would only use up our share of
 * the authority's limits. The addresses that lead here are those of the operator's hosts and of this machine; of a customer's
 * host, every address must be one of them, because the authority may choose any (RFC 8555 section 10.2).
 */
import { networkInterfaces } from 'node:os';
import type { CertificateProblem, HostPurpose } from '#operate/certificates/rows/certificates-table.ts';
import { type Resolve, recordsOf } from '#platform/base/net/resolve.ts';

type LookProblem = Pick<CertificateProblem, 'type' | 'text'>;

/** `ownHosts`: of all nodes. Null: the host leads here, as far as we can know. */
export async function lookAtHost(
  { host, purpose }: { host: string; purpose: HostPurpose },
  { resolve, ownHosts }: { resolve: Resolve; ownHosts: readonly string[] },
): Promise<LookProblem | null> {
  const found = await addressesOf(host, resolve);
  if (found === null) return { type: 'dns-unknown', text: `DNS gave no answer for ${host}` };
  if (found.length === 0) return { type: 'dns-none', text: `${host} has no address in DNS` };
  // Behind NAT, this machine does not know the address that its own name leads to.
  if (purpose === 'server') return null;
  const ours = await Promise.all(ownHosts.map((own) => addressesOf(own, resolve)));
  const here = new Set([...ours.flatMap((addresses) => addresses ?? []), ...interfaceAddresses()]);
  const stray = found.find((address) => !here.has(address));
  if (stray === undefined) return null;
  return { type: 'dns-elsewhere', text: `${host} leads to ${stray}, which is not an address of this server` };
}

/** Null: not known. */
async function addressesOf(host: string, resolve: Resolve): Promise<string[] | null> {
  const found = Promise.all(['A', 'AAAA'].map((type) => recordsOf<string>(host, type, resolve)));
  return found.then(
    (addresses) => addresses.flat(),
    () => null,
  );
}

function interfaceAddresses(): string[] {
  const all = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  return all.filter(({ internal }) => !internal).map(({ address }) => address);
}
