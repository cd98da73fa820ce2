/** Before the first start: whether the ports of the settings are free. Opens each of them for a moment. */
import { createServer } from 'node:net';
import { type FindingDraft, failure, ok, skipped } from '#operate/doctor/finding.ts';
import type { Config } from '#platform/settings/config.ts';

type PortConfig = Pick<
  Config,
  | 'httpHost'
  | 'httpPort'
  | 'smtpHost'
  | 'inboundPort'
  | 'submissionPort'
  | 'submissionTlsPort'
  | 'acme'
  | 'acmeHost'
  | 'acmeHttpPort'
  | 'acmeHttpsPort'
>;

export async function checkFreePorts(config: PortConfig): Promise<FindingDraft> {
  const { httpHost, httpPort, smtpHost, inboundPort, submissionPort, submissionTlsPort } = config;
  const { acme, acmeHost, acmeHttpPort, acmeHttpsPort } = config;
  const at = (host: string | null, ...ports: (number | null)[]) =>
    ports.flatMap((port) => (port === null ? [] : [{ host: host ?? undefined, port }]));
  const wanted = [
    ...at(httpHost, httpPort),
    ...at(smtpHost, inboundPort, submissionPort, submissionTlsPort),
    ...(acme === null ? [] : at(acmeHost, acmeHttpPort, acmeHttpsPort)),
  ];
  const results = await Promise.all(
    wanted.map(async (address) => ({ ...address, code: await tryToListen(address) })),
  );
  const taken = results.filter(({ code }) => code === 'EADDRINUSE').map(({ port }) => port);
  if (taken.length > 0) {
    const filter = taken.map((port) => `sport = :${port}`).join(' or ');
    return failure(
      `another program listens on ${taken.map((port) => `port ${port}`).join(' and ')}`,
      `\`ss -ltnp '${filter}'\` names it; stop it and keep it stopped, such as with \`systemctl disable --now exim4\``,
    );
  }
  const [refused] = results.filter(({ code }) => code !== null);
  if (refused)
    return skipped(`not known: this user may not listen on port ${refused.port} (${refused.code})`);
  return ok(wanted.map(({ port }) => port).join(', '));
}

/** The code of the error; null if the port is free. */
function tryToListen(address: { host: string | undefined; port: number }): Promise<string | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'EFAILED'));
    server.listen(address, () => server.close(() => resolve(null)));
  });
}
