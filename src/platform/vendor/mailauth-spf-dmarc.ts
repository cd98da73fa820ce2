/**
 * The SPF (RFC 7208) and DMARC (RFC 9989) evaluation of mailauth, one protocol at a time. Its documented way in,
 * `authenticate`, needs a whole message; the doctor has only a domain and an address. Loaded on the first call: mailauth
 * takes about 30 MB, and commands that do not need it must not pay for it.
 * Read in mailauth 7.1.0.
 */
import type { Resolve } from '#platform/base/net/resolve.ts';

export interface SpfOptions {
  /** The address of MAIL FROM. */
  sender: string;
  ip: string;
  helo: string;
  resolver: Resolve;
  /** In milliseconds; after that, the result is `temperror`. */
  maxElapsedTime: number;
}

export async function evaluateSpf(options: SpfOptions): Promise<{ result: string; comment?: string }> {
  const { spf } = await import('mailauth/lib/spf/index.js');
  // The name of the receiver, which is only for its Received-SPF field.
  const { status } = await spf({
    ...options,
    strict: true,
    mta: options.helo,
    resolver: options.resolver as never,
  });
  return status;
}

export interface DmarcOptions {
  /** The domains of the From header field. */
  headerFrom: string[];
  /** The domains that passed SPF and DKIM. */
  spfDomains: string[];
  dkimDomains: { id: string; domain: string }[];
  resolver: Resolve;
  /** Follow RFC 9989 exactly. */
  strict: true;
}

export interface DmarcEvaluation {
  status: { result: string };
  /** What becomes of a mail that fails: `none`, `quarantine` or `reject`. */
  policy?: string;
  /** The record and the domain that it was found at. */
  rr?: string;
  policyDomain?: string;
  alignment: { spf?: { result?: unknown }; dkim?: { result?: unknown } };
}

/** False if the domain cannot have a DMARC policy. */
export async function evaluateDmarc(options: DmarcOptions): Promise<DmarcEvaluation | false> {
  const { dmarc } = await import('mailauth/lib/dmarc/index.js');
  return (await dmarc({ ...options, resolver: options.resolver as never })) as DmarcEvaluation | false;
}
