/** Mails of ours to judge DKIM by: untouched, and with a second copy of an important field on top. */
import { createPrivateKey } from 'node:crypto';
import { composeMime, toBytes } from '#mail/compose/mime.ts';
import { composeRaw } from '#mail/compose/raw-message.ts';
import { signatures } from '#mail/compose/sign.ts';
import { toFields } from './compose-cases.ts';
import { dkimKey } from './dkim.ts';

/** The DNS record of the key that signs the samples. */
export const record = `v=DKIM1; k=rsa; p=${dkimKey.publicKey}`;
export const signer = {
  domain: 'sender.invalid',
  selector: dkimKey.selector,
  privateKey: createPrivateKey(dkimKey.privateKey),
};
// OpenDKIM refuses signatures from the future.
const date = Date.now() - 60_000;

const named = [
  ...['From', 'To', 'Cc', 'Subject', 'Date', 'Reply-To', 'Message-ID', 'Content-Type'],
  ...['Content-Transfer-Encoding', 'MIME-Version', 'Feedback-ID', 'List-Id', 'List-Unsubscribe'],
  ...['List-Unsubscribe-Post', 'List-Help', 'List-Subscribe', 'List-Post', 'List-Owner', 'List-Archive'],
];

/** A mail of the API with few of the fields, and a submitted one with all of them. */
function untouched(): Buffer[] {
  const headers = { 'List-Unsubscribe': '<mailto:u@sender.invalid>' };
  const { message } = composeMime(toFields({ text: 'Hello', headers }));
  const api = toBytes({ ...message, fields: [...signatures(message, signer, date), ...message.fields] });
  const values: Record<string, string> = { From: 'a@sender.invalid', 'Content-Type': 'text/plain' };
  const fields = named.map((name) => `${name}: ${values[name] ?? '7bit'}\r\n`);
  const raw = Buffer.from(`${fields.join('')}\r\nHello\r\n`);
  const tracking = { opens: false, clicks: false, trackers: [] } as never;
  const { messages } = composeRaw({ raw, messageId: 'x@sender.invalid', date }, tracking, signer);
  return [api, ...messages];
}

/** Each mail untouched, then with one more field of each name on top. */
export function samples(): { what: string; raw: Buffer; isUntouched: boolean }[] {
  return untouched().flatMap((raw, index) => [
    { what: `mail ${index}`, raw, isUntouched: true },
    ...named.map((name) => ({
      what: `mail ${index} with another ${name}`,
      raw: Buffer.concat([Buffer.from(`${name}: <e@evil.invalid>\r\n`), raw]),
      isUntouched: false,
    })),
  ]);
}
