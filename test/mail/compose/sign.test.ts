/** Signatures verify, cover what they should, and are byte for byte those of mailauth's own signer. */
import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import { createRequire } from 'node:module';
import test from 'ava';
import fc from 'fast-check';
import { type DKIMSignOptions, dkimVerify } from 'mailauth';
import type { dkimSign } from 'mailauth/lib/dkim/sign.js';
import { newDkimKey } from '#accounts/domains.ts';
import { cases, fieldsOf, toFields } from '#lab/compose-cases.ts';
import { record, samples } from '#lab/oversigned-mails.ts';
import { runs } from '#lab/runs.ts';
import { composeMime, type MimeMessage, toBytes } from '#mail/compose/mime.ts';
import { createKeyRing, type DkimSigner, signatures } from '#mail/compose/sign.ts';

const at = Date.UTC(2026, 0, 2, 3, 4, 5);

async function signer() {
  const { selector, privateKey, publicKey } = await newDkimKey();
  const resolver = async (name: string, type: string) => {
    if (type === 'TXT' && name === `${selector}._domainkey.sender.invalid`) {
      return [[`v=DKIM1; k=rsa; p=${publicKey}`]];
    }
    throw Object.assign(new Error(`no ${name}`), { code: 'ENOTFOUND' });
  };
  const verify = async (raw: Buffer) =>
    (await dkimVerify(raw, { resolver })).results.map(({ status }) => status.result);
  const key = { domain: 'sender.invalid', selector, privateKey: createPrivateKey(privateKey) };
  return { verify, key, pem: privateKey };
}

const oversigned = [
  ...['From', 'Reply-To', 'To', 'Cc', 'Subject', 'Date', 'Message-ID', 'MIME-Version', 'Content-Type'],
  ...['Content-Transfer-Encoding', 'List-Id', 'List-Unsubscribe', 'List-Unsubscribe-Post', 'List-Help'],
  ...['List-Subscribe', 'List-Post', 'List-Owner', 'List-Archive', 'Feedback-ID'],
];

/** mailauth's own signer cannot oversign; this copy of it adds the names to those of the fields that it found. */
const signWithMailauth = ((): typeof dkimSign => {
  const require = createRequire(import.meta.url);
  const tools = require('mailauth/lib/tools');
  const original = tools.getSigningHeaderLines;
  for (const part of ['dkim-signer', 'sign'])
    delete require.cache[require.resolve(`mailauth/lib/dkim/${part}`)];
  tools.getSigningHeaderLines = (...args: unknown[]) => {
    const found = original(...args);
    return { ...found, keys: `${found.keys}: ${oversigned.join(': ')}` };
  };
  const { dkimSign: sign } = require('mailauth/lib/dkim/sign');
  tools.getSigningHeaderLines = original;
  return sign;
})();

/** The signature field that mailauth's own signer makes. */
async function signedByMailauth(raw: Buffer, selector: string, privateKey: string): Promise<string> {
  const options = {
    canonicalization: 'relaxed/relaxed',
    algorithm: 'rsa-sha256',
    signTime: new Date(at),
    headerList: [...oversigned, 'Sender', 'In-Reply-To', 'References'],
    signatureData: [{ signingDomain: 'sender.invalid', selector, privateKey }],
  };
  const { signatures } = await signWithMailauth(raw, options as unknown as DKIMSignOptions);
  return signatures;
}

const signed = (message: MimeMessage, key: DkimSigner) =>
  toBytes({ ...message, fields: [...signatures(message, key, at), ...message.fields] });

test('every case verifies once it is signed', async (t) => {
  const { verify, key } = await signer();
  for (const name of cases) {
    const { message } = composeMime(fieldsOf(name));
    t.deepEqual(await verify(signed(message, key)), ['pass'], name);
    t.regex(signatures(message, key, at)[0]!.text, /^DKIM-Signature: (?:[^\r\n]+\r\n[ \t])*[^\r\n]+$/, name);
  }
});

test('the signature names domain, selector, algorithm and time', async (t) => {
  const { key } = await signer();
  const { text } = signatures(composeMime(toFields({ text: 'x' })).message, key, at)[0]!;
  const unfolded = text.replaceAll('\r\n', '');
  for (const tag of [
    'a=rsa-sha256',
    'c=relaxed/relaxed',
    'd=sender.invalid',
    `s=${key.selector}`,
    `t=${at / 1000}`,
  ]) {
    t.true(unfolded.includes(` ${tag};`), tag);
  }
  t.notRegex(unfolded, /\bl=/, 'it covers the whole body');
});

test('a changed byte in the body or in a signed header breaks the signature', async (t) => {
  const { verify, key } = await signer();
  const { message } = composeMime(toFields({ text: 'One hundred', replyTo: 'r@x.invalid' }));
  const raw = signed(message, key);
  for (const [from, to] of [
    ['One hundred', 'one hundred'],
    ['Subject: Hello', 'Subject: Hullo'],
    ['From: App', 'From: Bpp'],
    ['To: ann', 'To: bnn'],
    ['Reply-To: r', 'Reply-To: s'],
    ['<id@', '<ie@'],
    ['Date: Fri, 02', 'Date: Fri, 09'],
  ] as const) {
    const changed = Buffer.from(raw.toString('latin1').replace(from, to), 'latin1');
    t.false(changed.equals(raw), from);
    t.notDeepEqual(await verify(changed), ['pass'], from);
  }
});

test('a signature holds for the mail as it was sent, and not with one more of a signed field on top', async (t) => {
  for (const { what, raw, isUntouched } of samples()) {
    const { results } = await dkimVerify(raw, { resolver: async () => [[record]] });
    t.is(results[0]?.status.result === 'pass', isUntouched, what);
  }
});

test("the signature is byte for byte that of mailauth's own signer, whatever the message", async (t) => {
  const { key, pem } = await signer();
  const header = async (message: MimeMessage) =>
    t.is(
      `${signatures(message, key, at)[0]!.text}\r\n`,
      await signedByMailauth(toBytes(message), key.selector, pem),
    );
  for (const name of cases) await header(composeMime(fieldsOf(name)).message);
  const piece = fc.constantFrom(
    ...['a', 'B', ' ', '  ', '\t', '.', '\r\n', '\r\n\r\n', ' \r\n', '\t\r\n', 'é', '\0', ':'],
  );
  const body = fc.array(piece, { maxLength: 30 }).map((pieces) => Buffer.from(pieces.join('')));
  const words = fc.array(fc.constantFrom('a', ' ', '\t', '\r\n ', '\u00a0', 'É', ':', '  '), {
    maxLength: 20,
  });
  const named = fc.constantFrom('Subject', 'LIST-id', 'list-ID', 'X-Other', 'Sender');
  const fields = fc.array(
    fc.tuple(named, words).map(([name, value]) => ({ name, text: `${name}:${value.join('')}x` })),
    { minLength: 1, maxLength: 5 },
  );
  await fc.assert(
    fc.asyncProperty(fields, body, (some, body) =>
      header({ fields: [{ name: 'From', text: 'From: a@sender.invalid' }, ...some], body }),
    ),
    { numRuns: runs(200) },
  );
});

test('a key that cannot sign is an error at every mail, and the error does not reveal it', async (t) => {
  const { pem } = await signer();
  const keyOf = createKeyRing((sealed) => sealed);
  const { privateKey: other } = generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  });
  for (const bad of ['', 'no key', pem.slice(0, 400), pem.replace(/[A-Z]/g, 'A'), other, other]) {
    const error = t.throws(() => keyOf(bad));
    t.notRegex(error?.message ?? '', /BEGIN|MII/);
  }
});

test('a key is opened once for many mails', async (t) => {
  const { pem } = await signer();
  const opened: string[] = [];
  const keyOf = createKeyRing((sealed) => {
    opened.push(sealed);
    return pem;
  });
  t.is(keyOf('one'), keyOf('one'));
  keyOf('another');
  t.deepEqual(opened, ['one', 'another']);
});
