/**
 * What protects the hosts of a domain: DANE where it speaks of a host, else MTA-STS (RFC 8461 section 2: it must not
 * override DANE), else nothing but what the host offers. Both are asked at the same time; a domain that publishes
 * neither costs one MX and one TXT query.
 *
 * Never rejects and never takes longer than its parts' patience. What could not be found out is said in a note, or,
 * where a policy must hold and cannot, in the host's ending.
 */
import type { Dane, DaneFinding } from './dane-records.ts';
import type { Sts } from './mta-sts.ts';
import type { Protect } from './route.ts';

/** `dane`: null where no resolver can be trusted. */
export function createProtect({ dane, sts }: { dane: Dane | null; sts: Sts }): Protect {
  return async (domain, hosts) => {
    const [byDane, bySts] = await Promise.all([dane?.(domain, hosts) ?? [], sts(domain)]);
    return hosts.map((host, at) => ({ ...host, ...strictest(byDane[at], bySts(host.name)) }));
  };
}

/** DANE without a usable record demands TLS with anybody: less than MTA-STS does, more than nothing. */
function strictest(dane: DaneFinding | undefined, sts: DaneFinding): DaneFinding {
  if (!dane) return sts;
  if (dane.result) return dane;
  if (dane.tls.policy === 'dane') {
    const vouches = dane.tls.records.length > 0 || sts.tls.policy !== 'mta-sts';
    return vouches ? dane : sts;
  }
  const notes = [dane.tls.note, sts.tls.note].filter((note) => note !== undefined);
  return notes.length > 0 ? { ...sts, tls: { ...sts.tls, note: notes.join('; ') } } : sts;
}
