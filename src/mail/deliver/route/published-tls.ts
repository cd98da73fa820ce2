/** The result of a TLS session in the light of what the recipient's domain publishes, as RFC 8460 reports it. */
import type { TlsaRecord, TlsSession, TlsTrial } from '#platform/values/glossary.ts';
import type { Host, HostTls } from './route.ts';

type Verdict = Pick<TlsSession, 'failure' | 'reason'>;

export function sessionOf(host: Host, trial: TlsTrial, address: string, source: string | null): TlsSession {
  const { policy, policyText } = published(host.tls);
  const verdict = verdictOf(host, policy, trial);
  return { policy, policyText, host: host.name, address, source, ...verdict };
}

function verdictOf({ name, tls }: Host, policy: TlsSession['policy'], trial: TlsTrial): Verdict {
  const { failure, certificateFailure, reason } = trial;
  if (failure) return { failure, reason };
  // Without a policy, any certificate will do.
  if (policy === 'no-policy-found') return { failure: null, reason: null };
  // In mode `testing`, mail is sent although the policy does not name the host.
  if (tls.sts?.isNamed === false) return { failure: 'validation-failure', reason: notNamed(name) };
  if (tls.stsProblem) return { failure: 'sts-policy-fetch-error', reason: tls.stsProblem };
  if (tls.policy === 'dane' && tls.records.length === 0) {
    return { failure: 'tlsa-invalid', reason: tls.note ?? null };
  }
  return { failure: certificateFailure, reason };
}

/** A host that was not called because of the policy; null if there was another reason. */
export function sessionOfSkipped({ name, tls, result, addresses }: Host): TlsSession | null {
  const about = { host: name, address: null, source: null };
  if (result?.kind === 'tls-required' && tls.sts?.isNamed === false) {
    return { ...about, ...published(tls), failure: 'validation-failure', reason: notNamed(name) };
  }
  // Without an address it is not the look-up of its TLSA records that failed.
  if (result?.kind !== 'dns-failed' || addresses.length === 0) return null;
  return { ...about, policy: 'tlsa', policyText: [], failure: 'dnssec-invalid', reason: result.detail };
}

const notNamed = (host: string) => `${host} is not among the hosts of the MTA-STS policy`;

function published(tls: HostTls): Pick<TlsSession, 'policy' | 'policyText'> {
  if (tls.policy === 'dane') return { policy: 'tlsa', policyText: tls.records.map(tlsaText) };
  if (tls.sts) return { policy: 'sts', policyText: tls.sts.text };
  return { policy: tls.stsProblem ? 'sts' : 'no-policy-found', policyText: [] };
}

function tlsaText({ usage, selector, matching, data }: TlsaRecord): string {
  return `${usage} ${selector} ${matching} ${data.toString('hex')}`;
}
