/** The DNS servers: whether they answer, and whether one that can be trusted validates. */
import { createSecureResolve } from '../../../route/dnssec.ts';
import type { ServerState } from '../doctor-dns.ts';
import { type FindingDraft, failure, ok, skipped, warning } from '../finding.ts';

const mend = 'check the network, and POSTERN_DNS_SERVERS or /etc/resolv.conf';

export function checkDnsServers(states: ServerState[]): FindingDraft {
  const silent = states.filter(({ trouble }) => trouble !== null);
  const names = states.map(({ server }) => server).join(', ');
  if (silent.length === 0) return ok(`${names} ${states.length === 1 ? 'answers' : 'answer'}`);
  const found = silent
    .map(({ server, trouble }) => `no answer from DNS server ${server}: ${trouble}`)
    .join('; ');
  return silent.length === states.length ? failure(found, mend) : warning(found, mend);
}

interface Validation {
  servers: string[];
  signedName: string;
  timeoutMs: number;
}

const validating =
  'to use DANE, run a validating resolver on this machine (apt install unbound) and set POSTERN_DNS_SERVERS=127.0.0.1';

/** Without it mail goes all the same, with DANE left out. */
export async function checkValidation({ servers, signedName, timeoutMs }: Validation): Promise<FindingDraft> {
  const resolve = createSecureResolve(servers, { timeoutMs: timeoutMs, tries: 1 });
  if (resolve === null) {
    return warning(
      "the system's DNS servers are not on this machine, so their validation cannot be trusted",
      validating,
    );
  }
  const answer = await resolve(signedName, 'A').catch((error: Error) => error.message);
  if (typeof answer === 'string') return skipped(`not known: ${answer}`);
  if (answer.secure) return ok('answers are validated');
  return warning(
    `the DNS server does not validate answers: ${signedName} is signed, and was not marked as authentic`,
    validating,
  );
}
