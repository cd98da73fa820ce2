/**
 * The verification of DKIM signatures (RFC 6376) and ARC chains (RFC 8617) of mailauth. Its documented way in, `authenticate`,
 * asks DNS on the thread that holds the message; here the keys are there already. Loaded on the first call: mailauth takes about
 * 30 MB, and servers that receive no mail must not pay for it.
 * Read in mailauth 7.1.0.
 */
import { createRequire } from 'node:module';
import type { Resolve } from '#platform/base/net/resolve.ts';

export interface SignatureChecks {
  dkim: { result: string; domain: string; selector: string }[];
  /** `none` without a chain. */
  arc: string;
  /** The addresses of the From fields. */
  headerFrom: string[];
}

interface DkimVerification {
  headerFrom: string[];
  results: { id: string; signingDomain: string; selector: string; status: { result: string } }[];
  arc: unknown;
}

type DkimVerify = (
  input: Buffer,
  options: { resolver: Resolve; minBitLength: number },
) => Promise<DkimVerification>;
type VerifyChain = (
  data: unknown,
  options: { resolver: Resolve },
) => Promise<{ status: { result: string } } | false>;

const require = createRequire(import.meta.url);

/** RFC 8301 section 3.2: shorter keys are no proof. */
const minBitLength = 1024;

export async function checkSignatures(raw: Buffer, resolver: Resolve): Promise<SignatureChecks> {
  const { dkimVerify }: { dkimVerify: DkimVerify } = require('mailauth/lib/dkim/verify');
  const { arc: verifyChain }: { arc: VerifyChain } = require('mailauth/lib/arc');
  const { headerFrom, results, arc } = await dkimVerify(raw, { resolver, minBitLength });
  const chain = await verifyChain(arc, { resolver });
  return {
    // Without a signature there is one result, `none`, which names no domain.
    dkim: results
      .filter(({ signingDomain }) => signingDomain)
      .map(({ signingDomain, selector, status }) => ({
        result: status.result,
        domain: signingDomain,
        selector,
      })),
    arc: chain ? chain.status.result : 'none',
    headerFrom,
  };
}
