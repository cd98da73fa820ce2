/** Builds the parts of POSTERN_ACME: the certificates in the database, the two web ports, the keeper that gets certificates. */
import { readFileSync } from 'node:fs';
import { findVerifiedOwner, listSenderHosts } from '#accounts/rows/domains-table.ts';
import { createSeal } from '#accounts/seal.ts';
import { type HttpServer, listen } from '#front/http/http-server.ts';
import { createResolver } from '#mail/deliver/route/resolver.ts';
import type { ChallengeType } from '#operate/certificates/authority.ts';
import { CertificateKeeper } from '#operate/certificates/certificate-keeper.ts';
import { HostCertificates } from '#operate/certificates/host-certificates.ts';
import { type Certificate, openCertificate } from '#operate/certificates/listener-certificate.ts';
import { createPolicies } from '#operate/certificates/mta-sts-policy.ts';
import { customerHosts, ownHosts } from '#operate/certificates/wanted-hosts.ts';
import { redirectToHttps, serveSecurely, tlsOptionsOf } from '#operate/certificates/web-ports.ts';
import { acmeSettingsOf } from '#platform/settings/acme-settings.ts';
import { ConfigError } from '#platform/settings/config-error.ts';
import type { ServerContext } from './context.ts';
import type { Intake } from './intake.ts';

/** The operator's files, or a self-signed certificate. */
export function openFileCertificate({ config, clock, onError }: ServerContext): Certificate {
  return openCertificate({
    certFile: config.tlsCert,
    keyFile: config.tlsKey,
    dataDir: config.dataDir,
    hostname: config.hostname,
    clock,
    onError,
  });
}

export async function openHostCertificates(context: ServerContext): Promise<HostCertificates> {
  const { config, db, secrets, changeToken, clock, onError } = context;
  const certificates = new HostCertificates({
    db,
    seal: createSeal(secrets),
    mainHost: config.tlsCert === null ? config.hostname : null,
    fallback: openFileCertificate(context),
    changeToken,
    clock,
    onError,
  });
  await certificates.start();
  return certificates;
}

/** `open` gets each server as soon as it listens. */
export async function openWebPorts(
  { config, db }: ServerContext,
  certificates: HostCertificates,
  answer: Intake['answer'],
  open: HttpServer[],
): Promise<void> {
  const { acmeHost, acmeHttpPort, acmeHttpsPort, httpProxies, httpKeepAlive, dnsServers } = config;
  const shared = { httpHost: acmeHost, httpProxies, httpKeepAlive };
  const names = (port: string) => ({ host: 'POSTERN_ACME_HOST', port });
  if (acmeHttpPort !== null) {
    // In a container, clients reach another port than the one that is listened on.
    const { protocol, port } = new URL(config.baseUrl);
    const publicPort = protocol === 'https:' ? Number(port || 443) : acmeHttpsPort;
    const redirect = redirectToHttps(certificates, acmeHttpsPort && publicPort);
    open.push(
      await listen(redirect, { ...shared, httpPort: acmeHttpPort, names: names('POSTERN_ACME_HTTP_PORT') }),
    );
  }
  if (acmeHttpsPort === null) return;
  const policyOf = createPolicies({
    resolve: createResolver(dnsServers),
    isVerified: async (domain) => (await findVerifiedOwner(db, domain)) !== null,
    isOurs: (host) => certificates.isCertifiedServer(host),
  });
  const secure = await listen(serveSecurely(certificates, policyOf, answer), {
    ...shared,
    httpPort: acmeHttpsPort,
    names: names('POSTERN_ACME_HTTPS_PORT'),
    tls: tlsOptionsOf(certificates),
  });
  open.push(secure);
  certificates.onChange(secure.useCertificate!);
}

export function startKeeper(context: ServerContext, certificates: HostCertificates): CertificateKeeper {
  const { config, db, secrets, changeToken, clock, random, log, onError } = context;
  const challenges: ChallengeType[] = [];
  if (config.acmeHttpPort !== null) challenges.push('http-01');
  if (config.acmeHttpsPort !== null) challenges.push('tls-alpn-01');
  const own = ownHosts(config);
  const keeper = new CertificateKeeper({
    db,
    seal: createSeal(secrets),
    resolve: createResolver(config.dnsServers),
    certificates,
    wantedHosts: async () => [...own, ...customerHosts(await listSenderHosts(db), own)],
    challenges,
    settings: acmeSettingsOf(config),
    hasOtherNodes: config.databaseUrl !== null,
    changeToken,
    directory: config.acmeDirectory,
    contact: config.acme!,
    ca: config.acmeCa === null ? null : readCa(config.acmeCa),
    clock,
    random,
    log,
    onError,
    ...(context.acmePollMs !== undefined && { pollMs: context.acmePollMs }),
  });
  keeper.start();
  return keeper;
}

function readCa(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new ConfigError([`POSTERN_ACME_CA: ${(error as Error).message}`]);
  }
}
