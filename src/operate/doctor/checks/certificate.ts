/** The certificate of our own SMTP ports: whether it can be read, fits its key, names this host and is valid long enough. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { ListedCertificate } from '#operate/certificates/rows/certificates-table.ts';
import { certificateState } from '#operate/condition/certificate-state.ts';
import { type FindingDraft, failure, ok, skipped, warning } from '#operate/doctor/finding.ts';
import type { Config } from '#platform/settings/config.ts';

type CertificateConfig = Pick<
  Config,
  'acme' | 'hostname' | 'inboundPort' | 'submissionPort' | 'submissionTlsPort' | 'tlsCert' | 'tlsKey'
>;

const dayMs = 86_400_000;
/** ACME clients such as Certbot renew thirty days before expiry; if half of that has passed, the renewal fails. */
const soonDays = 14;

const renew = 'renew it (certbot renew), and find out why it was not renewed automatically';

export async function checkCertificate(config: CertificateConfig, now: number): Promise<FindingDraft> {
  // Each host has a check of its own.
  if (config.acme !== null && config.tlsCert === null) return ok('by ACME (POSTERN_ACME)');
  const hasSubmission = config.submissionPort !== null || config.submissionTlsPort !== null;
  if (!hasSubmission && config.inboundPort === null) return skipped('no port uses a certificate');
  if (config.tlsCert === null) {
    if (!hasSubmission) return ok('self-signed, which is enough for returned mail');
    return warning('self-signed: applications refuse it, or cannot verify the server', advice(config));
  }
  const pair = await readPair(config.tlsCert, config.tlsKey ?? config.tlsCert);
  if ('problem' in pair) {
    return failure(
      pair.problem,
      'correct POSTERN_TLS_CERT and POSTERN_TLS_KEY, or the permissions of the files; until then the ports have the certificate that was read before, or a self-signed one',
    );
  }
  const { cert } = pair;
  const left = Math.floor((Date.parse(cert.validTo) - now) / dayMs);
  const age = Math.floor((now - Date.parse(cert.validFrom)) / dayMs);
  const found = `${config.tlsCert}: ${days(age)} old, valid for ${days(left)} more`;
  if (Date.parse(cert.validTo) <= now)
    return failure(`${config.tlsCert} expired on ${day(cert.validTo)}`, renew);
  if (age < 0)
    return failure(
      `${config.tlsCert} is valid only from ${day(cert.validFrom)}`,
      'check the clock of this server',
    );
  if (cert.checkHost(config.hostname) === undefined) {
    const names = cert.subjectAltName?.replaceAll('DNS:', '') ?? cert.subject;
    return warning(`${config.tlsCert} is for ${names}, not for ${config.hostname}`, advice(config));
  }
  if (hasSubmission && cert.checkIssued(cert)) {
    return warning(`${config.tlsCert} is self-signed`, advice(config));
  }
  return left < soonDays ? warning(found, renew) : ok(found);
}

/** A certificate by ACME. */
export function checkHostCertificate(
  row: ListedCertificate,
  config: CertificateConfig,
  now: number,
): FindingDraft {
  const { state, severity, figure, advice } = certificateState(row, config, now);
  if (state === 'unused' || advice === null) return state === 'valid' ? ok(figure) : skipped(figure);
  return severity === 'act' ? failure(figure, advice) : warning(figure, advice);
}

async function readPair(
  certFile: string,
  keyFile: string,
): Promise<{ cert: X509Certificate } | { problem: string }> {
  try {
    const cert = new X509Certificate(await readFile(certFile));
    const key = createPrivateKey(await readFile(keyFile));
    return cert.checkPrivateKey(key) ? { cert } : { problem: `${keyFile} is not the key of ${certFile}` };
  } catch (error) {
    return { problem: `${certFile} with ${keyFile}: ${(error as Error).message}` };
  }
}

function advice({ hostname }: CertificateConfig): string {
  return `get one for ${hostname} (certbot certonly -d ${hostname}) and name it in POSTERN_TLS_CERT and POSTERN_TLS_KEY`;
}

function days(count: number): string {
  return count === 1 ? '1 day' : `${count} days`;
}

function day(text: string): string {
  return new Date(text).toISOString().slice(0, 10);
}
