/** The limit on open files: each connection, in or out, is one. */

import { type FindingDraft, ok, skipped, warning } from '#operate/doctor/finding.ts';
import type { Surroundings } from '#operate/doctor/surroundings.ts';
import type { Config } from '#platform/settings/config.ts';

type Ports = Pick<Config, 'inboundPort' | 'submissionPort' | 'submissionTlsPort'>;

/** Files that the database, logs, DNS, webhooks (256) and Node itself need. */
const others = 512;

export async function checkOpenFiles(
  config: Ports & Pick<Config, 'httpConcurrency' | 'mtaConcurrency' | 'smtpConnections'>,
  { openFiles }: Surroundings,
): Promise<FindingDraft> {
  const max = await openFiles();
  if (max === null) return skipped('not known: the system does not report the limit');
  const isListening = [config.inboundPort, config.submissionPort, config.submissionTlsPort].some(Boolean);
  const needed =
    config.httpConcurrency + config.mtaConcurrency + (isListening ? config.smtpConnections : 0) + others;
  const found = `${Number.isFinite(max) ? max : 'any number of'} files may be open; up to ${needed} are needed`;
  if (max >= needed) return ok(`${found} (a service manager may set another limit for the server)`);
  return warning(
    found,
    `raise the limit: LimitNOFILE=${Math.max(65536, needed)} in the systemd unit, or ulimit -n`,
  );
}
