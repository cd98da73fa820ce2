/** The certificate that our own SMTP ports show: there, valid for long enough, for our name, with its key. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Config } from '../../../config.ts';
import { type FindingDraft, failure, ok, skipped, warning } from '../finding.ts';

type CertificateConfig = Pick<
  Config,
  'hostname' | 'inboundPort' | 'submissionPort' | 'submissionTlsPort' | 'tlsCert' | 'tlsKey'
>;

const dayMs = 86_400_000;
/** Certbot and its like renew thirty days before the end: after half of that something is wrong. */
const soonDays = 14;

const renew = 'renew it (certbot renew), and find out why it was not renewed automatically';

export async function checkCertificate(config: CertificateConfig, now: number): Promise<FindingDraft> {
  const takesApplications = config.submissionPort !== null || config.submissionTlsPort !== null;
  if (!takesApplications && config.inboundPort === null) return skipped('no port uses a certificate');
  if (config.tlsCert === null) {
    if (!takesApplications) return ok('self-signed, which is enough for returned mail');
    return warning('self-signed: applications refuse it, or cannot verify the server', get(config));
  }
  const pair = await readPair(config.tlsCert, config.tlsKey ?? config.tlsCert);
  if ('trouble' in pair) {
    return failure(
      pair.trouble,
      'correct POSTERN_TLS_CERT and POSTERN_TLS_KEY, or the permissions of the files',
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
      'check the clock of this machine',
    );
  if (cert.checkHost(config.hostname) === undefined) {
    const names = cert.subjectAltName?.replaceAll('DNS:', '') ?? cert.subject;
    return warning(`${config.tlsCert} is for ${names}, not for ${config.hostname}`, get(config));
  }
  if (takesApplications && cert.checkIssued(cert)) {
    return warning(`${config.tlsCert} is self-signed`, get(config));
  }
  return left < soonDays ? warning(found, renew) : ok(found);
}

async function readPair(
  certFile: string,
  keyFile: string,
): Promise<{ cert: X509Certificate } | { trouble: string }> {
  try {
    const cert = new X509Certificate(await readFile(certFile));
    const key = createPrivateKey(await readFile(keyFile));
    return cert.checkPrivateKey(key) ? { cert } : { trouble: `${keyFile} is not the key of ${certFile}` };
  } catch (error) {
    return { trouble: `${certFile} with ${keyFile}: ${(error as Error).message}` };
  }
}

function get({ hostname }: CertificateConfig): string {
  return `get one for ${hostname} (certbot certonly -d ${hostname}) and name it in POSTERN_TLS_CERT and POSTERN_TLS_KEY`;
}

function days(count: number): string {
  return count === 1 ? '1 day' : `${count} days`;
}

function day(text: string): string {
  return new Date(text).toISOString().slice(0, 10);
}
