/**
 * What a receiver thinks of a message's DKIM signatures: mailauth's verdict, with the keys looked up in the test's
 * own DNS. An unsigned message gives one entry with the result 'none' and no domain.
 */
import { createPublicKey } from 'node:crypto';
import { Resolver } from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import type { ExecutionContext } from 'ava';
import type { DkimKey } from '#accounts/domains.ts';
import type { Mx } from './mx/mx.ts';

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
  // It brings an HTTP client and more, and few processes of tests verify.
  const { dkimVerify } = await import('mailauth');
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

/** All mail that has arrived at the first MX host. */
export async function areSigned(
  t: ExecutionContext,
  { mx, dns }: { mx: Mx[]; dns: { address: string } },
): Promise<void> {
  const messages = [...mx[0]!.messages];
  const verdicts = await Promise.all(messages.map(({ raw }) => verifyDkim(raw, dns)));
  const failed = messages.filter((_, index) => verdicts[index]![0]!.result !== 'pass');
  t.true(messages.length > 0);
  t.deepEqual(
    failed.map(({ to }) => to),
    [],
  );
}
