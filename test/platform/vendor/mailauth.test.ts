/** The parts of mailauth that src/platform/vendor/mailauth.ts uses are as they were in the version that was read. */
import { createPrivateKey, generateKeyPairSync, sign } from 'node:crypto';
import { createRequire } from 'node:module';
import test from 'ava';
import { dkimSign } from 'mailauth/lib/dkim/sign.js';
import { dkimBody, generateCanonicalizedHeader, getSigningHeaderLines } from '#platform/vendor/mailauth.ts';

const changed =
  "mailauth's DKIM signer has changed: read its lib/dkim and lib/tools.js again and adapt src/platform/vendor/mailauth.ts";

/** What src/mail/compose/sign.ts does with the parts. */
function signedByParts(privateKey: string, signTime: Date): string {
  const headers = [
    { key: 'from', casedKey: 'From', line: Buffer.from('From: a@sender.invalid') },
    { key: 'x-other', casedKey: 'X-Other', line: Buffer.from('X-Other: 1') },
  ];
  const body = dkimBody('relaxed', 'sha256');
  body.update(Buffer.from('Hello \r\n'));
  const { canonicalizedHeader, signatureHeaderLine } = generateCanonicalizedHeader(
    'DKIM',
    getSigningHeaderLines(headers, 'From:To'),
    {
      signingDomain: 'sender.invalid',
      selector: 'key1',
      algorithm: 'rsa-sha256',
      canonicalization: 'relaxed/relaxed',
      bodyHash: body.digest('base64'),
      signTime,
      signature: '~'.repeat(344),
    },
  );
  const b = sign('sha256', canonicalizedHeader, createPrivateKey(privateKey)).toString('base64');
  let at = 0;
  return `${signatureHeaderLine.replace(/~/g, () => b[at++]!)}\r\n`;
}

test('the parts of the signer, put together, make the signature of the whole', async (t) => {
  const { version } = createRequire(import.meta.url)('mailauth/package.json');
  t.is(version, '7.1.0', changed);
  const { privateKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  });
  const signTime = new Date(Date.UTC(2026, 0, 2, 3, 4, 5));
  const { signatures } = await dkimSign('From: a@sender.invalid\r\nX-Other: 1\r\n\r\nHello \r\n', {
    canonicalization: 'relaxed/relaxed',
    algorithm: 'rsa-sha256',
    signTime,
    headerList: ['From', 'To'],
    signatureData: [{ signingDomain: 'sender.invalid', selector: 'key1', privateKey }],
  } as never);
  let made: unknown;
  try {
    made = signedByParts(privateKey, signTime);
  } catch (error) {
    made = error;
  }
  t.is(made, signatures, changed);
});
