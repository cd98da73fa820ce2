/**
 * Compares a certificate with a host's TLSA records (RFC 6698). For mail, RFC 7672 section 3.1 allows only the usages 2
 * (DANE-TA) and 3 (DANE-EE); mail/deliver/route/dane-records.ts leaves out all other records. mx-connect matches the records
 * and verifies the chain of signatures.
 *
 * BUGS: name constraints and path lengths of a DANE-TA chain are not checked.
 */
import type { X509Certificate } from 'node:crypto';
import type { TlsaRecord } from '#platform/values/glossary.ts';
import { verifyCertAgainstTlsa } from '#platform/vendor/mx-connect.ts';

const trustAnchor = 2;
const endEntity = 3;

/**
 * Null if the certificate matches a record, otherwise the reason. `chain`: as the host sent it, leaf first. `names`: with
 * usage 2, the certificate must be for one of them (RFC 7672 section 3.2.2).
 */
export function tlsaMismatch(
  records: TlsaRecord[],
  chain: X509Certificate[],
  names: string[],
): string | null {
  const [leaf, ...issuers] = chain;
  if (!leaf) return 'it shows no certificate';
  const matches = (usage: number, above: X509Certificate[]) => {
    const of = records.filter((record) => record.usage === usage);
    const wanted = of.map(({ selector, matching, data }) => ({
      usage,
      selector,
      mtype: matching,
      cert: data,
    }));
    return wanted.length > 0 && verifyCertAgainstTlsa(leaf, wanted, above).valid;
  };
  // RFC 7672 section 3.1.1: with usage 3, the certificate's names and dates are not checked.
  if (matches(endEntity, [])) return null;
  if (!records.some(({ usage }) => usage === trustAnchor)) return 'its certificate matches no TLSA record';
  // Without the check of `ca`, the owner of any certificate from that authority could issue one for any name.
  const authorities = issuers.filter((certificate) => certificate.ca && isCurrent(certificate));
  if (!matches(trustAnchor, authorities)) return 'its chain of certificates matches no TLSA record';
  if (!isCurrent(leaf)) return `its certificate is valid from ${leaf.validFrom} to ${leaf.validTo}`;
  if (names.some((name) => leaf.checkHost(name) !== undefined)) return null;
  return `its certificate is for ${leaf.subjectAltName ?? leaf.subject}, not for ${names.join(' or ')}`;
}

/** Uses the real clock, like Node's own checks of certificates. */
function isCurrent({ validFromDate, validToDate }: X509Certificate): boolean {
  const now = Date.now();
  return validFromDate.getTime() <= now && now <= validToDate.getTime();
}
