/**
 * Creates a self-signed certificate (RFC 5280): it encrypts but does not authenticate. It serves clients that do not verify
 * certificates, until the operator configures one from a CA.
 */
import { generateKeyPairSync, randomBytes, sign, X509Certificate } from 'node:crypto';
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

export function selfSigned(hostname: string, now: number): { cert: string; key: string; until: number } {
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
