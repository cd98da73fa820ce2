/** The DKIM signature (RFC 6376): mailauth's, relaxed/relaxed, rsa-sha256, over the message as it will be sent. */
import type { DKIMSignOptions } from 'mailauth';
import { dkimSign } from 'mailauth/lib/dkim/sign.js';

/**
 * What is signed where it is there: RFC 6376 section 5.4.1, and RFC 8058 section 4's two, without which one-click
 * unsubscription is not honoured.
 */
const signedHeaders = [
  'From',
  'Sender',
  'Reply-To',
  'To',
  'Subject',
  'Date',
  'Message-ID',
  'In-Reply-To',
  'References',
  'MIME-Version',
  'Content-Type',
  'Content-Transfer-Encoding',
  'List-Id',
  'List-Unsubscribe',
  'List-Unsubscribe-Post',
];

export interface Signer {
  domain: string;
  selector: string;
  /** PEM. */
  privateKey: string;
}

/** The message with its signature on top. Throws where no signature could be made: nothing leaves unsigned. */
export async function sign(raw: Buffer, signer: Signer, at: number): Promise<Buffer> {
  const options = {
    canonicalization: 'relaxed/relaxed',
    algorithm: 'rsa-sha256',
    signTime: new Date(at),
    headerList: signedHeaders,
    signatureData: [
      { signingDomain: signer.domain, selector: signer.selector, privateKey: signer.privateKey },
    ],
  };
  // Its type wants one signature's fields at the top, where its code does not look for them.
  const { signatures, errors } = await dkimSign(raw, options as unknown as DKIMSignOptions);
  if (!signatures) throw new Error(`no DKIM signature for ${signer.domain}: ${errors?.[0]?.err?.message}`);
  return Buffer.concat([Buffer.from(signatures), raw]);
}
