/** The hosts that need a certificate: the operator's own, and those of the verified sender domains. */
import type { HostPurpose, WantedHost } from '#operate/certificates/rows/certificates-table.ts';
import { asHostName } from '#platform/values/host-name.ts';

interface ServerNames {
  hostname: string;
  baseUrl: string;
}

interface SenderHosts {
  orgId: string;
  name: string;
  trackingHost: string | null;
}

/**
 * The most hosts of one organization that the authority is asked for: its limits count for all of us together. Tracking hosts
 * come first, because their links are broken without a certificate.
 */
export const maxHostsOfOrganization = 100;

/** Names of one label are for the local network only, and no authority certifies them. */
export function ownHosts({ hostname, baseUrl }: ServerNames): WantedHost[] {
  const { hostname: web } = new URL(baseUrl);
  const names = [hostname, baseUrl.startsWith('https:') ? web : hostname];
  return [...new Set(names)]
    .filter((host) => host.includes('.') && asHostName(host) === host)
    .map((host) => ({ host, purpose: 'server', orgId: null }));
}

/**
 * `domains`: the verified ones, the oldest first. Each host is there once; one in a domain of another organization is left out,
 * because it would count for the wrong one.
 */
export function customerHosts(domains: SenderHosts[], own: WantedHost[]): WantedHost[] {
  const wanted = new Map<string, WantedHost>();
  const counts = new Map<string, number>();
  const taken = new Set(own.map(({ host }) => host));
  const add = (orgId: string, host: string, purpose: HostPurpose) => {
    const count = counts.get(orgId) ?? 0;
    if (taken.has(host) || wanted.has(host) || count >= maxHostsOfOrganization) return;
    if (asHostName(host) !== host || !host.includes('.')) return;
    counts.set(orgId, count + 1);
    wanted.set(host, { host, purpose, orgId });
  };
  const owners = Map.groupBy(domains, ({ name }) => name);
  const isOfAnother = (orgId: string, host: string) => {
    const labels = host.split('.');
    const above = labels.flatMap((_, at) => owners.get(labels.slice(at).join('.')) ?? []);
    return above.length > 0 && above.every((one) => one.orgId !== orgId);
  };
  for (const { orgId, trackingHost } of domains)
    if (trackingHost !== null && !isOfAnother(orgId, trackingHost)) add(orgId, trackingHost, 'tracking');
  for (const { orgId, name } of domains) add(orgId, `mta-sts.${name}`, 'mta-sts');
  return [...wanted.values()];
}
