/**
 * Decides which policy protects each host of a domain: DANE if the host has it, else MTA-STS (RFC 8461 section 2: it must not
 * override DANE), else opportunistic TLS. Both are looked up in parallel; a domain that publishes neither costs one MX
 * and one TXT query.
 *
 * Never rejects and never takes longer than the timeouts of its parts. A look-up that failed is reported in a note, or in
 * the host's result if the host must not be used without it.
 */
import type { Dane, DaneFinding } from './dane-records.ts';
import type { Sts } from './mta-sts.ts';
import type { Protect } from './route.ts';

/** `dane`: null if there is no trusted resolver. */
export function createProtect({ dane, sts }: { dane: Dane | null; sts: Sts }): Protect {
  return async (domain, hosts) => {
    const [byDane, bySts] = await Promise.all([dane?.(domain, hosts) ?? [], sts(domain)]);
    return hosts.map((host, at) => ({ ...host, ...strictest(byDane[at], bySts(host.name)) }));
  };
}

/** DANE without a usable record demands TLS with any certificate: weaker than MTA-STS, stronger than nothing. */
function strictest(dane: DaneFinding | undefined, sts: DaneFinding): DaneFinding {
  if (!dane) return sts;
  if (dane.result) return dane;
  if (dane.tls.policy === 'dane') {
    const vouches = dane.tls.records.length > 0 || sts.tls.policy !== 'mta-sts';
    return vouches ? dane : sts;
  }
  const notes = [dane.tls.note, sts.tls.note].filter((note) => note !== undefined);
  const tls = sts.tls.policy === 'opportunistic' ? { ...dane.tls, ...sts.tls } : sts.tls;
  return { ...sts, tls: notes.length > 0 ? { ...tls, note: notes.join('; ') } : tls };
}
