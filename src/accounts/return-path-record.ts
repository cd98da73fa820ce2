/**
 * Whether a name serves as a return path: it is an alias of the server's return path domain, or it has records of its own, so
 * that bounces come to the same mail host and SPF (RFC 7208) passes for that host. Looked up as receivers do.
 */
import { normalName, type Resolve, recordsOf } from '#platform/base/net/resolve.ts';
import { evaluateSpf } from '#platform/vendor/mailauth-spf-dmarc.ts';
import type { Judgement } from './dkim-record.ts';

const spfTimeoutMs = 5_000;

/** A host may have many addresses, each of which costs an evaluation. */
const maxAddresses = 8;

/** `target`: the server's return path domain. Rejects if DNS gave no answer. */
export async function checkReturnPathRecord(
  name: string,
  target: string,
  resolve: Resolve,
): Promise<Judgement & { found: string[] }> {
  const aliases = (await recordsOf<string>(name, 'CNAME', resolve)).map(normalName);
  if (aliases.includes(target)) return { ok: true, problem: null, found: aliases };
  const hosts = await mailHosts(name, resolve);
  const found = aliases.length > 0 ? aliases : hosts;
  if (hosts.length === 0 && aliases.length === 0) return { ok: false, problem: null, found };
  const atTarget = await mailHosts(target, resolve);
  const wanted = atTarget.length > 0 ? atTarget : [target];
  const host = hosts.find((one) => wanted.includes(one));
  if (host === undefined) {
    const where = found.join(' and ').slice(0, 500);
    const problem = `The name leads to ${where}, so bounces would not come back to this server. Point it to ${target}.`;
    return { ok: false, problem, found };
  }
  const refused = await addressWithoutSpf(name, host, resolve);
  if (refused === null) return { ok: true, problem: null, found };
  const problem = `Bounces would come back, but the SPF record of the name does not pass for ${refused}. Publish the CNAME record instead, or a TXT record with ${ownSpf(target)}.`;
  return { ok: false, problem, found };
}

/** The SPF record of a return path that is not an alias. */
export const ownSpf = (target: string) => `v=spf1 include:${target} ~all`;

async function mailHosts(name: string, resolve: Resolve): Promise<string[]> {
  const records = await recordsOf<{ exchange: string }>(name, 'MX', resolve);
  return records.map(({ exchange }) => normalName(exchange));
}

/** An address of the host for which SPF does not pass; null if there is none. */
async function addressWithoutSpf(name: string, host: string, resolve: Resolve): Promise<string | null> {
  const found = await Promise.all(['A', 'AAAA'].map((type) => recordsOf<string>(host, type, resolve)));
  for (const ip of found.flat().slice(0, maxAddresses)) {
    const { result } = await evaluateSpf({
      sender: `postmaster@${name}`,
      ip,
      helo: host,
      resolver: resolve,
      maxElapsedTime: spfTimeoutMs,
    });
    if (result === 'temperror') throw Object.assign(new Error('SPF: no answer'), { code: 'ESERVFAIL' });
    if (result !== 'pass') return ip;
  }
  return null;
}
