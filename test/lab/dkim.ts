/**
 * What a receiver thinks of a message's DKIM signatures: mailauth's verdict, with the keys looked up in the test's
 * own DNS. An unsigned message gives one entry with the result 'none' and no domain.
 */
import { Resolver } from 'node:dns/promises';
import { dkimVerify } from 'mailauth';

export interface DkimVerdict {
  domain: string | undefined;
  selector: string | undefined;
  /** RFC 8601 section 2.7.1: 'pass', 'fail', 'neutral', 'temperror', 'none'... */
  result: string;
  comment: string | undefined;
}

export async function verifyDkim(raw: Buffer | string, dns: { address: string }): Promise<DkimVerdict[]> {
  const resolver = new Resolver();
  resolver.setServers([dns.address]);
  const { results } = await dkimVerify(raw, {
    resolver: (name, type) => resolver.resolve(name, type) as Promise<string[][]>,
  });
  return results.map(({ signingDomain, selector, status }) => ({
    domain: signingDomain,
    selector,
    result: status.result,
    comment: status.comment || undefined,
  }));
}
