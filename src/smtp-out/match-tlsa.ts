/**
 * Does a certificate match a host's TLSA records? RFC 6698, as RFC 7672 section 3.1 narrows it for mail: usages 2
 * (DANE-TA) and 3 (DANE-EE) alone. The matching and the path of signatures are mx-connect's.
 *
 * BUGS: name constraints and path lengths of a DANE-TA chain are not looked at.
 */
import type { X509Certificate } from 'node:crypto';
import type { TlsaRecord } from '../glossary.ts';
import { verifyCertAgainstTlsa } from '../vendor/mx-connect.ts';

const trustAnchor = 2;
const endEntity = 3;

/** The records that say something of a mail host. None: the host is to be spoken to under TLS, whoever it is. */
export function usableRecords(records: TlsaRecord[]): TlsaRecord[] {
  return records.filter(
    ({ usage, selector, matching }) =>
      (usage === trustAnchor || usage === endEntity) && selector <= 1 && matching <= 2,
  );
}

/**
 * Null where a record vouches for the certificate, else why none does. `chain`: the leaf first, as the host sent it.
 * `names`: of which the certificate must bear one where an authority is pinned (RFC 7672 section 3.2.2).
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
  // RFC 7672 section 3.1.1: neither its name nor its dates count, the record says it all.
  if (matches(endEntity, [])) return null;
  if (!records.some(({ usage }) => usage === trustAnchor)) return 'its certificate matches no TLSA record';
  // Without this, whoever has any certificate of the pinned authority could issue one for any name.
  const authorities = issuers.filter((certificate) => certificate.ca && isCurrent(certificate));
  if (!matches(trustAnchor, authorities)) return 'its chain of certificates matches no TLSA record';
  if (!isCurrent(leaf)) return `its certificate is valid from ${leaf.validFrom} to ${leaf.validTo}`;
  if (names.some((name) => leaf.checkHost(name) !== undefined)) return null;
  return `its certificate is for ${leaf.subjectAltName ?? leaf.subject}, not for ${names.join(' or ')}`;
}

/** By the real clock, as the certificates of the other policies are checked. */
function isCurrent({ validFromDate, validToDate }: X509Certificate): boolean {
  const now = Date.now();
  return validFromDate.getTime() <= now && now <= validToDate.getTime();
}
