/**
 * DNS blocklists (RFC 5782): whether an address or a domain of ours is on one.
 *
 * A list is believed only where it knows its own test entry: many refuse what comes through public resolvers, some
 * with an answer that says so (Spamhaus: 127.255.255.x), others by knowing nobody any more.
 */
import { isIPv6 } from 'node:net';
import type { Dns } from '../doctor-dns.ts';
import { type FindingDraft, failure, ok, skipped, warning } from '../finding.ts';
import { reversed } from '../reverse-name.ts';

export interface Blocklist {
  name: string;
  zone: string;
  of: 'IPv4' | 'all addresses' | 'domains';
  /** What is always on it, as it stands before the zone. */
  testEntry: string;
  /** What a listing costs: with the large ones, most of the mail. */
  verdict: 'warning' | 'failure';
  /** Where to see why, and to be taken off. */
  help: string;
}

const testAddress = reversed('127.0.0.2');

export const wellKnown: Blocklist[] = [
  {
    ...{ name: 'Spamhaus ZEN', zone: 'zen.spamhaus.org', of: 'all addresses', testEntry: testAddress },
    ...{ verdict: 'failure', help: 'https://check.spamhaus.org/' },
  },
  {
    ...{ name: 'SpamCop', zone: 'bl.spamcop.net', of: 'IPv4', testEntry: testAddress },
    ...{ verdict: 'warning', help: 'https://www.spamcop.net/bl.shtml' },
  },
  {
    ...{ name: 'Barracuda', zone: 'b.barracudacentral.org', of: 'IPv4', testEntry: testAddress },
    ...{ verdict: 'warning', help: 'https://www.barracudacentral.org/lookups' },
  },
  {
    ...{ name: 'Spamhaus DBL', zone: 'dbl.spamhaus.org', of: 'domains', testEntry: 'dbltest.com' },
    ...{ verdict: 'failure', help: 'https://check.spamhaus.org/' },
  },
];

export function holdsAddress({ of }: Blocklist, address: string): boolean {
  return of === 'all addresses' || (of === 'IPv4' && !isIPv6(address));
}

export function checkAddressBlocklists(dns: Dns, list: Blocklist, address: string): Promise<FindingDraft> {
  return lookFor(dns, list, { entry: reversed(address), subject: address });
}

export function checkDomainBlocklists(dns: Dns, list: Blocklist, domain: string): Promise<FindingDraft> {
  return lookFor(dns, list, { entry: domain, subject: domain });
}

/** `entry`: how the subject, an address or a domain, stands in the list's zone. */
async function lookFor(
  dns: Dns,
  list: Blocklist,
  { entry, subject }: { entry: string; subject: string },
): Promise<FindingDraft> {
  const ask = (name: string) => dns.records<string>(`${name}.${list.zone}`, 'A');
  const answers = await Promise.all([ask(entry), ask(list.testEntry)]).catch((error: Error) => error);
  if (answers instanceof Error) return skipped(`not known: ${answers.message}`);
  const [codes, test] = answers;
  const refused = [...codes, ...test].find((code) => code.startsWith('127.255.255.'));
  if (refused !== undefined) {
    return skipped(
      `not known: ${list.name} refuses this resolver (${refused}${meaningOf(refused)})`,
      ownResolver,
    );
  }
  if (!test.some(isListing)) {
    return skipped(`not known: ${list.name} does not know its own test entry`, ownResolver);
  }
  const listings = codes.filter(isListing);
  if (listings.length === 0) return ok('not listed');
  const said = listings.map((code) => `${code}${meaningOf(code, list.zone)}`).join(', ');
  const advice = `find out at ${list.help} why ${subject} is on ${list.name} and how to be removed; fix the cause first`;
  return (list.verdict === 'failure' ? failure : warning)(`listed: ${said}`, advice);
}

const ownResolver =
  'blocklists do not answer public resolvers: run one here (apt install unbound) and set POSTERN_DNS_SERVERS=127.0.0.1';

/** Anything else is a resolver that invents answers. */
function isListing(code: string): boolean {
  return code.startsWith('127.');
}

const refusals: Record<string, string> = {
  '127.255.255.252': 'the zone name is wrong',
  '127.255.255.254': 'it is a public resolver',
  '127.255.255.255': 'it sends too many queries',
};

/** What Spamhaus writes its codes for. */
const meanings: Record<string, Record<string, string>> = {
  'zen.spamhaus.org': {
    '127.0.0.2': 'SBL, a spam source',
    '127.0.0.3': 'CSS, sends mail like a spammer',
    '127.0.0.4': 'XBL, a compromised machine',
    '127.0.0.9': 'DROP, a network run by criminals',
    '127.0.0.10': 'PBL, the network operator says that it has no mail servers here',
    '127.0.0.11': 'PBL, a network where no mail servers are expected',
  },
};

function meaningOf(code: string, zone = ''): string {
  const meaning = refusals[code] ?? meanings[zone]?.[code];
  return meaning === undefined ? '' : `: ${meaning}`;
}
