/**
 * Creates self-signed certificates (RFC 5280). The usual one encrypts but does not authenticate: it serves clients that do not
 * verify certificates, until there is one from an authority. The other answers an authority's TLS-ALPN-01 challenge.
 */
import { generateKeyPairSync, hash, randomBytes, sign, X509Certificate } from 'node:crypto';
import { AsnConvert, OctetString } from '@peculiar/asn1-schema';
import {
  AlgorithmIdentifier,
  AttributeTypeAndValue,
  AttributeValue,
  Certificate,
  Extension,
  Extensions,
  GeneralName,
  id_ce_subjectAltName,
  Name,
  RelativeDistinguishedName,
  SubjectAlternativeName,
  SubjectPublicKeyInfo,
  TBSCertificate,
  Validity,
  Version,
} from '@peculiar/asn1-x509';

const commonName = '2.5.4.3';
const ecdsaWithSha256 = '1.2.840.10045.4.3.2';
const years = 10;

const acmeIdentifier = '1.3.6.1.5.5.7.1.31';

/** RFC 8737 section 3: the hash of the key authorization in a critical extension. */
export function challengeCertificate(hostname: string, keyAuthorization: string, now: number) {
  const digest = new OctetString(hash('sha256', keyAuthorization, 'buffer'));
  const extnValue = new OctetString(AsnConvert.serialize(digest));
  return selfSigned(hostname, now, [new Extension({ extnID: acmeIdentifier, critical: true, extnValue })]);
}

export function selfSigned(
  hostname: string,
  now: number,
  more: Extension[] = [],
): { cert: string; key: string; until: number } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const until = new Date(now);
  until.setUTCFullYear(until.getUTCFullYear() + years);
  // RFC 5280 limits a common name to 64 characters; clients compare the alternative name.
  const value = new AttributeValue({ utf8String: hostname.slice(0, 64) });
  const name = new Name([
    new RelativeDistinguishedName([new AttributeTypeAndValue({ type: commonName, value })]),
  ]);
  const names = new SubjectAlternativeName([new GeneralName({ dNSName: hostname })]);
  const algorithm = new AlgorithmIdentifier({ algorithm: ecdsaWithSha256 });
  const tbsCertificate = new TBSCertificate({
    version: Version.v3,
    // The leading 1 keeps the number positive.
    serialNumber: Uint8Array.from([1, ...randomBytes(15)]).buffer,
    signature: algorithm,
    issuer: name,
    validity: new Validity({ notBefore: new Date(now - 86_400_000), notAfter: until }),
    subject: name,
    subjectPublicKeyInfo: AsnConvert.parse(
      publicKey.export({ type: 'spki', format: 'der' }),
      SubjectPublicKeyInfo,
    ),
    extensions: new Extensions([
      new Extension({
        extnID: id_ce_subjectAltName,
        extnValue: new OctetString(AsnConvert.serialize(names)),
      }),
      ...more,
    ]),
  });
  const signature = sign('sha256', Buffer.from(AsnConvert.serialize(tbsCertificate)), privateKey);
  const certificate = new Certificate({
    tbsCertificate,
    signatureAlgorithm: algorithm,
    signatureValue: Uint8Array.from(signature).buffer,
  });
  return {
    cert: new X509Certificate(Buffer.from(AsnConvert.serialize(certificate))).toString(),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
    until: until.getTime(),
  };
}
