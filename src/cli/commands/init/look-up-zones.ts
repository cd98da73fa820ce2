/**
 * Looks in DNS for the names that `postern init` was given, before anything is written: a name that was mistyped is usually in a
 * zone that does not exist.
 */
import { createResolver } from '#mail/deliver/route/resolver.ts';
import { type Finding, type FindingDraft, ok, skipped, warning } from '#operate/doctor/finding.ts';
import { isNoRecord, type Resolve, recordsOf } from '#platform/base/net/resolve.ts';
import { domainOf } from '#platform/values/address.ts';
import { organizationalDomain } from '#platform/values/organizational-domain.ts';
import type { Answers } from './answers.ts';

const maxShown = 3;

export async function lookUpZones(
  { hostname, domain, email }: Answers,
  dnsServers: string[],
): Promise<Finding[]> {
  const resolve = createResolver(dnsServers);
  const zones = new Set([hostname, domain, domainOf(email)!].map(organizationalDomain));
  const found = await Promise.all(
    [...zones].map(async (subject) => ({ check: 'zone', subject, ...(await zoneOf(subject, resolve)) })),
  );
  return [...found, { check: 'address', subject: hostname, ...(await addressOf(hostname, resolve)) }];
}

const unknown = skipped('not known: DNS does not answer');

async function zoneOf(zone: string, resolve: Resolve): Promise<FindingDraft> {
  try {
    const servers = (await resolve(zone, 'NS')) as string[];
    return ok(`served by ${servers.slice(0, maxShown).join(', ')}`);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOTFOUND')
      return warning('does not exist in DNS', 'check the spelling, or register the domain');
    // The name of a private network may be part of a zone above it.
    return isNoRecord(error) ? ok('exists') : unknown;
  }
}

async function addressOf(hostname: string, resolve: Resolve): Promise<FindingDraft> {
  try {
    const all = await Promise.all(['A', 'AAAA'].map((type) => recordsOf<string>(hostname, type, resolve)));
    return ok(all.flat().slice(0, maxShown).join(', ') || 'none yet');
  } catch {
    return unknown;
  }
}
