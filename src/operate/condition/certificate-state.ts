/**
 * The state of a certificate that the server gets itself (POSTERN_ACME), in the words of every view: `postern certificate list`,
 * status, doctor and metrics. Each problem has its cure.
 */

import type { ListedCertificate } from '#operate/certificates/rows/certificates-table.ts';
import { iso, isoOrNull } from '#platform/base/clock.ts';
import { dueIn, span } from '#platform/base/span.ts';
import type { Severity } from './condition.ts';

export interface CertificateState {
  /** `unused`: a policy host whose DNS does not lead here. `waiting`: not asked for yet. */
  state: 'valid' | 'waiting' | 'failing' | 'expired' | 'unused';
  severity: Severity;
  figure: string;
  /** Sentences; null if nothing is wrong. */
  advice: string | null;
}

/** Most certificates that one view lists. */
export const maxListed = 20;

/** A renewal begins when a third of the time is left; if it has failed for half of that, a person must act. */
const lateShare = 1 / 6;

export function certificateState(
  row: ListedCertificate,
  names: { hostname: string },
  now: number,
): CertificateState {
  const { host, purpose, notBefore, notAfter, failingSince, problem, attemptAt } = row;
  if (isUnused(row))
    return { state: 'unused', severity: 'ok', figure: 'not used: its DNS does not lead here', advice: null };
  const isThere = notBefore !== null && notAfter !== null && notAfter > now;
  const left = isThere ? `${span(now - notBefore)} old, valid for ${span(notAfter - now)} more` : null;
  if (problem === null || failingSince === null) {
    if (left !== null) return { state: 'valid', severity: 'ok', figure: left, advice: null };
    return { state: 'waiting', severity: 'ok', figure: 'asked for, or about to be', advice: null };
  }
  const advice = `${cureOf(problem.type, host, names)} The next attempt is ${dueIn(attemptAt - now)}.`;
  const figure = problem.text;
  if (isThere) {
    const isLate = notAfter - now < (notAfter - notBefore) * lateShare;
    return { state: 'valid', severity: isLate ? 'act' : 'watch', figure: `${left}; ${figure}`, advice };
  }
  // Only the customer can correct the customer's DNS.
  const severity = purpose === 'server' ? 'act' : 'watch';
  return { state: notAfter === null ? 'failing' : 'expired', severity, figure, advice };
}

/** DNS leads elsewhere or nowhere, so its owner has another policy host, or none. */
export function isUnused({ purpose, notAfter, problem }: ListedCertificate): boolean {
  return purpose === 'mta-sts' && notAfter === null && (problem?.type.startsWith('dns-') ?? true);
}

/** `type`: of the problem, as in CertificateProblem. */
function cureOf(type: string, host: string, { hostname }: { hostname: string }): string {
  const target =
    host === hostname ? 'A and AAAA records with the addresses of this server' : `a CNAME to ${hostname}`;
  switch (type) {
    case 'dns-none':
      return `Publish ${target} for ${host}.`;
    case 'dns-elsewhere':
      return `Replace the records of ${host} by ${target}.`;
    case 'dns-unknown':
    case 'dns':
      return `Check the name servers of ${host}, and DNSSEC if it is signed.`;
    case 'connection':
    case 'tls':
      return `Let the authority connect to ports 80 and 443 of every address of ${host}: open them in the firewalls.`;
    case 'unauthorized':
    case 'incorrectResponse':
      return `Another server answers at ${host}: correct its addresses, or stop the program in front of ports 80 and 443.`;
    case 'caa':
      return `Allow the authority in the CAA record of ${host} or of the domains above it.`;
    case 'rejectedIdentifier':
      return `The authority does not certify ${host}. Use another name.`;
    case 'rateLimited':
      return 'The authority limits how often it is asked. The server waits as long as it demands.';
    case 'new-hosts':
      return 'The server asks for it by itself when the organization may have another new host.';
    case 'authority':
      return 'Check that this server reaches the authority over HTTPS, and POSTERN_ACME_DIRECTORY and POSTERN_ACME_CA.';
    default:
      return 'The words are those of the authority.';
  }
}

/** The row and its state, for --json. */
export function certificateDocument(row: ListedCertificate, { state, figure, advice }: CertificateState) {
  return {
    host: row.host,
    purpose: row.purpose,
    state,
    issuedAt: isoOrNull(row.notBefore),
    expiresAt: isoOrNull(row.notAfter),
    attemptAt: isoOrNull(row.attemptAt),
    failures: row.failures,
    failingSince: isoOrNull(row.failingSince),
    problem: row.problem && { type: row.problem.type, text: row.problem.text, at: iso(row.problem.at) },
    figure,
    advice,
  };
}
