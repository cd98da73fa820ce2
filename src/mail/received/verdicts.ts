/**
 * SPF, DKIM, DMARC and ARC of a received mail. All look-ups of a mail have one deadline and one bound; what DNS does not answer
 * in time is a temporary error, and the mail is taken without that verdict.
 */
import { isNoRecord, type Resolve } from '#platform/base/net/resolve.ts';
import type { SignatureChecks } from '#platform/vendor/mailauth-signatures.ts';
import { evaluateDmarc, evaluateSpf } from '#platform/vendor/mailauth-spf-dmarc.ts';
import type { ReadMail } from './read-mail.ts';
import type { KeyRecords } from './reading-tasks.ts';
import type { AuthenticationResult, Verdicts } from './received-mail.ts';

interface Judged {
  /** Of MAIL FROM; empty: the null sender. */
  sender: string;
  helo: string;
  peer: string;
  read: Pick<ReadMail, 'signatures' | 'fromDomains'>;
  /** Checks the signatures with these keys; null: it took too long. */
  check(keys: KeyRecords): Promise<SignatureChecks | null>;
}

export type Judge = (mail: Judged) => Promise<Verdicts>;

const defaultTimeoutMs = 8000;
/** SPF makes up to some dozens (RFC 7208 section 4.6.4), DMARC eight (RFC 9989 section 4.10). */
const maxLookUps = 80;

export function createJudge(resolve: Resolve, timeoutMs = defaultTimeoutMs): Judge {
  return async (mail) => {
    const bounded = boundedResolve(resolve, timeoutMs);
    const [spf, signatures] = await Promise.all([
      spfOf(mail, bounded, timeoutMs),
      signaturesOf(mail, bounded),
    ]);
    return { spf, ...signatures, dmarc: await dmarcOf(mail, { spf, ...signatures }, bounded) };
  };
}

/** For one mail. */
function boundedResolve(resolve: Resolve, timeoutMs: number): Resolve {
  const until = performance.now() + timeoutMs;
  let left = maxLookUps;
  return async (name, type) => {
    left -= 1;
    const ms = until - performance.now();
    if (left < 0 || ms <= 0) throw late();
    let timer: NodeJS.Timeout | undefined;
    const deadline = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(late()), ms);
    });
    try {
      return await Promise.race([resolve(name, type), deadline]);
    } finally {
      clearTimeout(timer);
    }
  };
}

const late = () => Object.assign(new Error('the time for DNS is over'), { code: 'ETIMEOUT' });

async function spfOf({ sender, helo, peer }: Judged, resolver: Resolve, maxElapsedTime: number) {
  const domain = sender === '' ? helo : sender.slice(sender.lastIndexOf('@') + 1);
  const { result } = await evaluateSpf({ sender, ip: peer, helo, resolver, maxElapsedTime }).catch(
    unanswered,
  );
  return { result: resultOf(result), domain: domain.toLowerCase() };
}

const unanswered = () => ({ result: 'temperror' });

async function signaturesOf(
  { read, check }: Judged,
  resolve: Resolve,
): Promise<Pick<Verdicts, 'dkim' | 'arc'>> {
  const { isSigned, isBounded, keyNames } = read.signatures;
  if (!isSigned) return { dkim: [], arc: { result: 'none' } };
  const entries = isBounded
    ? await Promise.all(keyNames.map(async (name) => [name, await keyAt(name, resolve)] as const))
    : [];
  const checks = isBounded ? await check(Object.fromEntries(entries)) : null;
  // RFC 8601 section 2.7.1: signed, but the signature could not be processed.
  if (checks === null)
    return { dkim: [{ result: 'neutral', domain: null, selector: null }], arc: { result: 'none' } };
  return {
    dkim: checks.dkim.map((one) => ({ ...one, result: resultOf(one.result) })),
    arc: { result: resultOf(checks.arc) },
  };
}

async function keyAt(name: string, resolve: Resolve): Promise<string[][] | null> {
  try {
    return (await resolve(name, 'TXT')) as string[][];
  } catch (error) {
    return isNoRecord(error) ? [] : null;
  }
}

async function dmarcOf(
  { read: { fromDomains } }: Judged,
  { spf, dkim }: Pick<Verdicts, 'spf' | 'dkim'>,
  resolver: Resolve,
): Promise<Verdicts['dmarc']> {
  // RFC 9989 section 5.3.1: a mail with several domains in From, or with none that can be read, has no policy.
  const [domain = null, ...others] = fromDomains ?? [];
  if (fromDomains === null || others.length > 0) return { result: 'permerror', domain: null, policy: null };
  if (domain === null) return { result: 'none', domain: null, policy: null };
  const evaluation = await evaluateDmarc({
    headerFrom: [domain],
    spfDomains: spf.result === 'pass' && spf.domain !== null ? [spf.domain] : [],
    dkimDomains: dkim.flatMap((one, index) =>
      one.result === 'pass' && one.domain !== null ? [{ id: String(index), domain: one.domain }] : [],
    ),
    resolver,
    strict: true,
  }).catch(() => null);
  if (evaluation === null) return { result: 'temperror', domain, policy: null };
  if (evaluation === false) return { result: 'none', domain, policy: null };
  return { result: resultOf(evaluation.status.result), domain, policy: policyOf(evaluation.policy) };
}

const policyOf = (policy: string | undefined) =>
  policy === 'none' || policy === 'quarantine' || policy === 'reject' ? policy : null;

const results = new Set(['none', 'pass', 'fail', 'softfail', 'neutral', 'policy', 'temperror', 'permerror']);

/** `neutral` in place of what RFC 8601 does not have. */
const resultOf = (text: string) => (results.has(text) ? text : 'neutral') as AuthenticationResult;
