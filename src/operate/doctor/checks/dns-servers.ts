/** The DNS servers: whether they answer, and whether their answers are validated by DNSSEC. */

import { createSecureResolve } from '#mail/deliver/route/dnssec.ts';
import type { DoctorContext } from '#operate/doctor/doctor-context.ts';
import type { ServerState } from '#operate/doctor/doctor-dns.ts';
import { type FindingDraft, failure, ok, skipped, warning } from '#operate/doctor/finding.ts';

const advice = 'check the network, and POSTERN_DNS_SERVERS or /etc/resolv.conf';

export function checkDnsServers(states: ServerState[]): FindingDraft {
  const silent = states.filter(({ error }) => error !== null);
  const names = states.map(({ server }) => server).join(', ');
  if (silent.length === 0) return ok(`${names} ${states.length === 1 ? 'answers' : 'answer'}`);
  const found = silent.map(({ server, error }) => `no answer from DNS server ${server}: ${error}`).join('; ');
  return silent.length === states.length ? failure(found, advice) : warning(found, advice);
}

const validationAdvice =
  'to use DANE, run a validating resolver on this server (apt install unbound) and set POSTERN_DNS_SERVERS=127.0.0.1';

/** Without validated answers, mail is still delivered, but without DANE. */
export async function checkValidation({
  config,
  surroundings,
}: Pick<DoctorContext, 'config' | 'surroundings'>): Promise<FindingDraft> {
  const { signedName, timeouts } = surroundings;
  const resolve = createSecureResolve(config.dnsServers, { timeoutMs: timeouts.dns, tries: 1 });
  if (resolve === null) {
    return warning(
      "the system's DNS servers are not on this server, so their validation cannot be trusted",
      validationAdvice,
    );
  }
  const answer = await resolve(signedName, 'A').catch((error: Error) => error.message);
  if (typeof answer === 'string') return skipped(`not known: ${answer}`);
  if (answer.secure) return ok('answers are validated');
  return warning(
    `the DNS server does not validate answers: ${signedName} is signed, and was not marked as authentic`,
    validationAdvice,
  );
}
