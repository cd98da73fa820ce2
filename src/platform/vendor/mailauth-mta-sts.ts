/**
 * The MTA-STS grammar of mailauth (RFC 8461): the DNS record, the policy text and the matching of host names.
 * mailauth's index does not export its module `lib/mta-sts`; its only complete function there, `getPolicy`, fetches the
 * policy itself and connects to any address, which is unsafe because a stranger names the policy host.
 * Read in mailauth 7.1.0.
 */

import { createRequire } from 'node:module';
import type { Resolve } from '#platform/base/net/resolve.ts';

export interface MtaStsPolicy {
  mode: 'enforce' | 'testing' | 'none';
  /** Patterns of host names; `*.` stands for one label. */
  mx: string[];
}

interface MtaStsGrammar {
  /** The id in the domain's record, or false if there is no valid record. Rejects if DNS does not answer. */
  resolvePolicy(domain: string, options: { resolver: Resolve; strict: true }): Promise<string | false>;
  /** Throws if the policy breaks the grammar. `maxAge` is in seconds; `mx` is absent if there is no mx line. */
  parsePolicy(
    text: string,
    options: { strict: true },
  ): { mode: MtaStsPolicy['mode']; mx?: string[]; maxAge: number };
  validateMx(host: string, policy: MtaStsPolicy): { valid: boolean };
}

export const { resolvePolicy, parsePolicy, validateMx }: MtaStsGrammar = createRequire(import.meta.url)(
  'mailauth/lib/mta-sts',
);
