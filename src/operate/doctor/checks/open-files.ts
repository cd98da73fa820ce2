/** How many files may be open: each connection is one, in both directions. */
import type { Config } from '../../../config.ts';
import { ok, type Seen, skipped, warning } from '../finding.ts';
import type { Surroundings } from '../surroundings.ts';

type Ports = Pick<Config, 'inboundPort' | 'submissionPort' | 'submissionTlsPort'>;

/** The database, logs, DNS, webhooks (256), and what Node itself has open. */
const others = 512;

export async function countFiles(
  config: Ports & Pick<Config, 'httpConcurrency' | 'mtaConcurrency' | 'smtpConnections'>,
  { openFiles }: Surroundings,
): Promise<Seen> {
  const most = await openFiles();
  if (most === null) return skipped('not known: the system does not say');
  const isListening = [config.inboundPort, config.submissionPort, config.submissionTlsPort].some(Boolean);
  const needed =
    config.httpConcurrency + config.mtaConcurrency + (isListening ? config.smtpConnections : 0) + others;
  const found = `${Number.isFinite(most) ? most : 'any number of'} files may be open; up to ${needed} are needed`;
  if (most >= needed) return ok(`${found} (a service manager may set another limit for the server)`);
  return warning(
    found,
    `raise the limit: LimitNOFILE=${Math.max(65536, needed)} in the systemd unit, or ulimit -n`,
  );
}
