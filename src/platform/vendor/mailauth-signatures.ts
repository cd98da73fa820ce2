/**
 * The verification of DKIM signatures (RFC 6376) and ARC chains (RFC 8617) of mailauth. Its documented way in, `authenticate`,
 * asks DNS on the thread that holds the message; here the keys are there already. Loaded on the first call: mailauth takes about
 * 30 MB, and servers that receive no mail must not pay for it.
 * Read in mailauth 7.1.0.
 */
import { createRequire } from 'node:module';
import type { Resolve } from '#platform/base/net/resolve.ts';

export interface SignatureChecks {
  dkim: { result: string; domain: string | null; selector: string | null }[];
  /** `none` without a chain. */
  arc: string;
}

interface DkimVerification {
  results: { signingDomain?: string; selector?: string; status: { result: string } }[];
  arc: unknown;
}

type DkimVerify = (
  input: Buffer,
  options: { resolver: Resolve; minBitLength: number; strict: true },
) => Promise<DkimVerification>;
type VerifyChain = (
  data: unknown,
  options: { resolver: Resolve; strict: true },
) => Promise<{ status: { result: string } } | false>;

const require = createRequire(import.meta.url);

/** RFC 8301 section 3.2: shorter keys are no proof. */
const minBitLength = 1024;

export async function checkSignatures(raw: Buffer, resolver: Resolve): Promise<SignatureChecks> {
  const { dkimVerify }: { dkimVerify: DkimVerify } = require('mailauth/lib/dkim/verify');
  const { arc: verifyChain }: { arc: VerifyChain } = require('mailauth/lib/arc');
  const { results, arc } = await dkimVerify(raw, { resolver, minBitLength, strict: true });
  const chain = await verifyChain(arc, { resolver, strict: true });
  return {
    // Without a signature there is one result, `none`.
    dkim: results
      .filter(({ status }) => status.result !== 'none')
      .map(({ signingDomain, selector, status }) => ({
        result: status.result,
        domain: signingDomain || null,
        selector: selector || null,
      })),
    arc: chain ? chain.status.result : 'none',
  };
}
