/** Whether mail gets out: connects to port 25 of some large providers from each of our addresses. */
import { type FindingDraft, failure, ok, skipped, warning } from '#operate/doctor/finding.ts';
import type { Origin, ProbeResult } from '#operate/doctor/sending-addresses.ts';

const unblock =
  'ask the provider of this server to open outbound TCP port 25 (most block it until asked), and check the firewall of this server';

/** Connection errors if the machine has no address of that family. */
const noFamily = /no route|no address or port of ours|EAFNOSUPPORT/;

/** `shutTo`: how many hosts the queue has found silent without any answer since, which decides if nothing could be probed. */
export function checkPort25({ from, family }: Origin, results: ProbeResult[], shutTo = 0): FindingDraft {
  if (results.length === 0) {
    if (shutTo > 0)
      return failure(
        `the queue found it refused or silent to all ${shutTo} hosts that mail waits for`,
        unblock,
      );
    return skipped(
      family === 4 ? 'not known: DNS returned no host to probe' : 'no probed host has an IPv6 address',
    );
  }
  const greeted = results.filter(({ greeting }) => greeting?.startsWith('2'));
  const rest = results.filter((result) => !greeted.includes(result)).map(describeFailure);
  if (greeted.length === results.length) return ok(`${greeted.map(({ host }) => host).join(', ')} greeted`);
  if (greeted.length > 0) {
    const found = `${greeted.map(({ host }) => host).join(', ')} greeted, but ${rest.join('; ')}`;
    return warning(
      found,
      'mail reaches the other hosts; if this persists, contact the operators of the named ones and quote their reply',
    );
  }
  if (from === undefined && family === 6) {
    if (results.every(({ error }) => noFamily.test(error ?? ''))) {
      return skipped('this server has no IPv6; mail is sent over IPv4');
    }
    return warning(rest.join('; '), `mail is sent over IPv4 as long as that is open; or ${unblock}`);
  }
  if (from !== undefined && results.every(({ error }) => error?.includes('no address or port of ours'))) {
    return failure(
      `${from} is not an address of this server`,
      'add it to an interface, or correct POSTERN_MTA_SOURCES',
    );
  }
  if (results.some(({ greeting }) => greeting !== null)) {
    return failure(
      rest.join('; '),
      'the port is open, but the hosts refuse this address: read their replies, and check the blocklists',
    );
  }
  return failure(rest.join('; '), unblock);
}

function describeFailure({ host, address, greeting, error }: ProbeResult): string {
  return greeting === null ? `${host} (${address}) ${error}` : `${host} (${address}) said "${greeting}"`;
}
