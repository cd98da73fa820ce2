/**
 * DNS blocklists (RFC 5782): whether one of our addresses or domains is listed.
 *
 * A list's answer counts only if the list also knows its own test entry: many lists refuse queries from public resolvers.
 * Some say so in the answer (Spamhaus: 127.255.255.x), others pretend that nothing is listed.
 */
import { isIP, isIPv4 } from 'node:net';
import type { Dns } from '#operate/doctor/doctor-dns.ts';
import { type FindingDraft, failure, ok, skipped, warning } from '#operate/doctor/finding.ts';
import { reversed } from '#platform/values/reverse-name.ts';

export interface Blocklist {
  name: string;
  zone: string;
  lists: 'IPv4' | 'all addresses' | 'domains';
  /** An entry that the list always has, as written before the zone. */
  testEntry: string;
  /** The finding if we are listed: `failure` if many receivers use the list. */
  verdict: 'warning' | 'failure';
  /** The page that shows the reason and accepts requests for removal. */
  help: string;
}

const testAddress = reversed('127.0.0.2');

export const wellKnownBlocklists: Blocklist[] = [
  {
    name: 'Spamhaus ZEN',
    zone: 'zen.spamhaus.org',
    lists: 'all addresses',
    testEntry: testAddress,
    verdict: 'failure',
    help: 'https://check.spamhaus.org/',
  },
  {
    name: 'SpamCop',
    zone: 'bl.spamcop.net',
    lists: 'IPv4',
    testEntry: testAddress,
    verdict: 'warning',
    help: 'https://www.spamcop.net/bl.shtml',
  },
  {
    name: 'Barracuda',
    zone: 'b.barracudacentral.org',
    lists: 'IPv4',
    testEntry: testAddress,
    verdict: 'warning',
    help: 'https://www.barracudacentral.org/lookups',
  },
  {
    name: 'Spamhaus DBL',
    zone: 'dbl.spamhaus.org',
    lists: 'domains',
    testEntry: 'dbltest.com',
    verdict: 'failure',
    help: 'https://check.spamhaus.org/',
  },
];

/** Whether the list has entries of this kind. `subject`: an address or a domain. */
export function covers({ lists }: Blocklist, subject: string): boolean {
  if (lists === 'domains') return !isIP(subject);
  return lists === 'IPv4' ? isIPv4(subject) : isIP(subject) !== 0;
}

export async function checkBlocklist(dns: Dns, list: Blocklist, subject: string): Promise<FindingDraft> {
  const entry = isIP(subject) ? reversed(subject) : subject;
  const ask = (name: string) => dns.records<string>(`${name}.${list.zone}`, 'A');
  const answers = await Promise.all([ask(entry), ask(list.testEntry)]).catch((error: Error) => error);
  if (answers instanceof Error) return skipped(`not known: ${answers.message}`);
  const [codes, test] = answers;
  const refused = [...codes, ...test].find((code) => code.startsWith('127.255.255.'));
  if (refused !== undefined) {
    return skipped(
      `not known: ${list.name} refuses this resolver (${refused}${meaningOf(refused)})`,
      resolverAdvice,
    );
  }
  if (!test.some(isListing)) {
    return skipped(`not known: ${list.name} does not know its own test entry`, resolverAdvice);
  }
  const listings = codes.filter(isListing);
  if (listings.length === 0) return ok('not listed');
  const described = listings.map((code) => `${code}${meaningOf(code, list.zone)}`).join(', ');
  const advice = `find out at ${list.help} why ${subject} is on ${list.name} and how to be removed; fix the cause first`;
  return (list.verdict === 'failure' ? failure : warning)(`listed: ${described}`, advice);
}

const resolverAdvice =
  'blocklists do not answer public resolvers: run one here (apt install unbound) and set POSTERN_DNS_SERVERS=127.0.0.1';

/** Any other address comes from a resolver that invents answers. */
function isListing(code: string): boolean {
  return code.startsWith('127.');
}

const refusals: Record<string, string> = {
  '127.255.255.252': 'the zone name is wrong',
  '127.255.255.254': 'it is a public resolver',
  '127.255.255.255': 'it sends too many queries',
};

/** The meanings of codes, as their lists document them. */
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
