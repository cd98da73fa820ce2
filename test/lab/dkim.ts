/**
 * What a receiver thinks of a message's DKIM signatures: mailauth's verdict, with the keys looked up in the test's
 * own DNS. An unsigned message gives one entry with the result 'none' and no domain.
 */
import { createPublicKey } from 'node:crypto';
import { Resolver } from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import { dkimVerify } from 'mailauth';
import type { DkimKey } from '../../src/accounts/domains.ts';

const pem = readFileSync(new URL('../fixtures/dkim.pem', import.meta.url), 'utf8');
const privateKey = pem.slice(pem.indexOf('-----BEGIN'));

/** The key of the domain that tests send from: one for all tests, because creating one takes a tenth of a second. */
export const dkimKey: DkimKey = {
  selector: 'pstntest',
  privateKey,
  publicKey: createPublicKey(privateKey).export({ type: 'spki', format: 'der' }).toString('base64'),
};

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
