/**
 * Fields to bytes. Each case is a pair in fixtures/compose: NAME.json, the fields, and NAME.eml, the exact bytes that
 * come of them, boundaries masked; a new case is a new pair. UPDATE_GOLDEN=1 writes the .eml files anew: read the diff.
 */
import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import test from 'ava';
import fc from 'fast-check';
import { type DKIMSignOptions, dkimVerify } from 'mailauth';
import { dkimSign } from 'mailauth/lib/dkim/sign.js';
import MailComposer from 'nodemailer/lib/mail-composer';
import { newDkimKey } from '../src/accounts/domains.ts';
import { parseMailbox } from '../src/address.ts';
import { toBytes } from '../src/compose/bytes.ts';
import { headerFault } from '../src/compose/headers.ts';
import { composeMime, type Fields } from '../src/compose/mime.ts';
import { createKeyRing, sign } from '../src/compose/sign.ts';

const folder = join(import.meta.dirname, 'fixtures/compose');
const cases = readdirSync(folder).flatMap((file) => (file.endsWith('.json') ? basename(file, '.json') : []));

/** A file: its fields, with `from` as a caller writes it and an attachment's content as text or base64. */
type Written = Omit<Partial<Fields>, 'from' | 'attachments'> & {
  from?: string;
  attachments?: { filename: string; contentType?: string; text?: string; base64?: string }[];
};

function toFields({ from, attachments = [], ...fields }: Written): Fields {
  return {
    from: parseMailbox(from ?? 'App <app@sender.invalid>')!,
    to: ['ann@there.invalid'],
    subject: 'Hello',
    headers: {},
    messageId: 'id@postern.invalid',
    date: Date.UTC(2026, 0, 2, 3, 4, 5),
    ...fields,
    attachments: attachments.map(({ text, base64 = '', ...rest }) => ({
      ...rest,
      content: text === undefined ? Buffer.from(base64, 'base64') : Buffer.from(text),
    })),
  };
}

const fieldsOf = (name: string) => toFields(JSON.parse(readFileSync(join(folder, `${name}.json`), 'utf8')));
const compose = async (written: Written) => (await composeMime(toFields(written))).raw.toString('latin1');

/** The composer's boundaries have 16 hexadecimal digits at random. */
function masked(raw: Buffer): string {
  return raw.toString('latin1').replace(/(?<=--_NmP-)[0-9a-f]{16}(?=-Part_\d)/g, 'sixteenhexdigits');
}

for (const name of cases) {
  test(`composed: ${name}`, async (t) => {
    const { raw } = await composeMime(fieldsOf(name));
    const golden = join(folder, `${name}.eml`);
    if (process.env.UPDATE_GOLDEN) writeFileSync(golden, masked(raw), 'latin1');
    t.is(masked(raw), readFileSync(golden, 'latin1'));
  });
}

test('there are ten cases at least, and no message without its fields', (t) => {
  t.true(cases.length >= 10);
  const messages = readdirSync(folder).filter((file) => file.endsWith('.eml'));
  t.deepEqual(
    messages.filter((file) => !cases.includes(basename(file, '.eml'))),
    [],
  );
});

/** What no message may have, whatever the caller gave; null where all is well. */
function faultOf(message: string): string | null {
  const head = message.slice(0, message.indexOf('\r\n\r\n'));
  const names = head.match(/^[^\s:]+(?=:)/gm)!.map((name) => name.toLowerCase());
  const single = ['from', 'sender', 'reply-to', 'to', 'subject', 'date', 'message-id', 'mime-version'];
  const faults: [string, boolean][] = [
    ['a bare CR', /\r(?!\n)/.test(message)],
    ['a bare LF', /(?<!\r)\n/.test(message)],
    ['NUL', message.includes('\0')],
    ['a line over 998', message.split('\r\n').some((line) => line.length > 998)],
    ['a header line of white space', /\r\n[ \t]*(\r\n|$)/.test(head)],
    ['no line end at the end', !message.endsWith('\r\n')],
    ['a header twice', single.some((name) => names.indexOf(name) !== names.lastIndexOf(name))],
    [
      'a header missing',
      !['from', 'to', 'subject', 'date', 'message-id'].every((name) => names.includes(name)),
    ],
    ['a Bcc', names.includes('bcc')],
  ];
  return faults.find(([, there]) => there)?.[0] ?? null;
}

const long = (word: string, times: number) => word.repeat(times);
const nasty: Record<string, Written> = {
  'CR, LF and NUL in text': { text: 'a\rb\nc\r\nd\r\r\n\0e\r' },
  'the same in text that needs encoding': { text: `é\rb\nc\r\nd\r\r\n\0e${long('x', 200)}\r` },
  'the same in html': { html: '<p>\r\n\ra\nb\0</p>\r' },
  'the same in html that is base64': { html: `${long('用户', 200)}\r\n\r\0\n` },
  'the same in both': { text: '\r', html: '\n\r' },
  'the same in an attached message': {
    text: 'x',
    attachments: [{ filename: 'm.eml', contentType: 'message/rfc822', text: 'Subject: x\r\r\n\ny\rz\n.' }],
  },
  'an attached message with NUL': {
    text: 'x',
    attachments: [{ filename: 'm.eml', contentType: 'message/rfc822', text: 'Subject: x\n\n\0' }],
  },
  'an attached message with a long line': {
    text: 'x',
    attachments: [{ filename: 'm.eml', contentType: 'message/rfc822', text: `a: b\n\n${long('y', 999)}` }],
  },
  'an attached multipart': {
    text: 'x',
    attachments: [{ filename: 'm', contentType: 'Multipart/Mixed; boundary=b', text: 'a\rb\nc' }],
  },
  'a lone surrogate in text': { text: '\ud800', html: '\udc00' },
  'a text of one line': { text: long('x', 100_000) },
  'a subject of one word': { text: 'x', subject: long('x', 998) },
  'a subject of one word beyond ASCII': { text: 'x', subject: long('é', 998) },
  'a subject of spaces': { text: 'x', subject: long(' ', 998) },
  'a subject with spaces at its end': { text: 'x', subject: `${long('x', 66)}   ` },
  'a subject with spaces inside': { text: 'x', subject: `a${long(' ', 300)}b` },
  'a subject of look-alikes': { text: 'x', subject: long('=?x?Q?', 166) },
  'a long display name': { text: 'x', from: `${long('n', 400)} <app@sender.invalid>` },
  'a display name of quotes': { text: 'x', from: `"${long('\\"', 190)}" <app@sender.invalid>` },
  'a display name with spaces': { text: 'x', from: `a${long(' ', 300)}b <app@sender.invalid>` },
  'headers of long words': { text: 'x', headers: { 'X-Long': long('v', 5000), 'X-Words': long('v ', 5000) } },
  'headers of spaces': {
    text: 'x',
    headers: { 'X-A': long(' ', 300), 'X-B': `a${long(' ', 300)}b`, 'X-C': '' },
  },
  'headers with control characters': { text: 'x', headers: { 'X-A': 'a\x01\x0b\x0c\x7f\u0085\u2028b' } },
  'the long recipients of ten': {
    text: 'x',
    to: Array.from({ length: 10 }, (_, n) => `${n}${long('a', 60)}@${long(`${long('b', 40)}.`, 4)}invalid`),
  },
};

for (const [what, written] of Object.entries(nasty)) {
  test(`on the wire there are lines that SMTP can carry: ${what}`, async (t) => {
    t.is(faultOf(await compose(written)), null);
  });
}

test('every case too has lines that SMTP can carry', async (t) => {
  for (const name of cases) {
    t.is(faultOf((await composeMime(fieldsOf(name))).raw.toString('latin1')), null, name);
  }
});

test("Date, Message-ID, Reply-To and Sender of the caller's replace ours, in any letter case", async (t) => {
  const { raw, messageId } = await composeMime(
    toFields({
      text: 'x',
      replyTo: 'ours@sender.invalid',
      headers: {
        dAtE: 'Tue, 1 Jul 2025 12:00:00 +0200',
        'message-ID': ' <theirs@app.invalid> ',
        'REPLY-TO': 'Lee, Ann <theirs@app.invalid>',
        sender: 'Desk: Help; <desk@app.invalid>',
      },
    }),
  );
  const message = raw.toString('latin1');
  t.is(faultOf(message), null);
  t.is(messageId, 'theirs@app.invalid');
  t.deepEqual(
    message.match(/^(Date|Message-ID|Reply-To|Sender): .*$/gim)!.sort(),
    [
      'Date: Tue, 01 Jul 2025 10:00:00 +0000\r',
      'Message-ID: <theirs@app.invalid>\r',
      'Reply-To: "Lee, Ann" <theirs@app.invalid>\r',
      'Sender: "Desk: Help;" <desk@app.invalid>\r',
    ].map((line) => line.replace('\r', '')),
  );
});

test('what would break or belie the message is no header, nor a part that replaces ours unless it is valid', (t) => {
  const faulty: Record<string, string[]> = {
    x: ['From', 'to', 'SUBJECT', 'DKIM-Signature', 'Bcc', 'cc', 'Received', 'Return-Path', 'MIME-Version'],
    y: [
      'Content-Type',
      'content-anything',
      'Resent-To',
      'ARC-Seal',
      'Authentication-Results',
      'Sender',
      'Date',
    ],
    'a@b.invalid': ['X Y', 'X:Y', '', 'X-É', 'X\r\nY', 'X\0', long('X', 77)],
    'a\r\nBcc: e@x.invalid': ['X-A', 'Reply-To', 'Message-ID'],
    'a\nb': ['X-A'],
    'a\rb': ['X-A'],
    'a\0b': ['X-A'],
    'a\ud800b': ['X-A'],
    'a@b.invalid, c@d.invalid': ['Reply-To', 'Sender', 'Message-ID'],
    '<jörg@b.invalid>': ['Message-ID'],
    [`<${long('a', 1000)}@b.invalid>`]: ['Message-ID'],
    'not a date': ['Date'],
  };
  for (const [value, names] of Object.entries(faulty)) {
    for (const name of names) t.is(typeof headerFault(name, value), 'string', `${name}: ${value}`);
  }
  const fine = [
    'X-A',
    'x_a',
    'List-Unsubscribe',
    'In-Reply-To',
    'Reply-To',
    'Sender',
    'Message-ID',
    'Toto',
    'Auto-Submitted',
  ];
  for (const name of fine) t.is(headerFault(name, 'a@b.invalid'), null, name);
});

// The signature.

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

/** What mailauth's own signer puts in front of a message. */
async function signedByMailauth(raw: Buffer, selector: string, privateKey: string): Promise<string> {
  const options = {
    canonicalization: 'relaxed/relaxed',
    algorithm: 'rsa-sha256',
    signTime: new Date(at),
    headerList: [
      ...['From', 'Sender', 'Reply-To', 'To', 'Subject', 'Date', 'Message-ID', 'In-Reply-To', 'References'],
      ...['MIME-Version', 'Content-Type', 'Content-Transfer-Encoding'],
      ...['List-Id', 'List-Unsubscribe', 'List-Unsubscribe-Post'],
    ],
    signatureData: [{ signingDomain: 'sender.invalid', selector, privateKey }],
  };
  const { signatures } = await dkimSign(raw, options as unknown as DKIMSignOptions);
  return signatures;
}

test('every case, signed, verifies; and the message under the signature is as it was', async (t) => {
  const { verify, key } = await signer();
  for (const name of cases) {
    const { raw } = await composeMime(fieldsOf(name));
    const signed = sign(raw, key, at);
    t.deepEqual(await verify(signed), ['pass'], name);
    t.true(signed.subarray(-raw.length).equals(raw), name);
    t.regex(
      signed.subarray(0, -raw.length).toString(),
      /^DKIM-Signature: (?:[^\r\n]+\r\n[ \t])*[^\r\n]+\r\n$/,
      name,
    );
  }
});

test('the signature says who signed, how, and when', async (t) => {
  const { key } = await signer();
  const signed = sign((await composeMime(toFields({ text: 'x' }))).raw, key, at).toString('latin1');
  for (const tag of [
    'a=rsa-sha256',
    'c=relaxed/relaxed',
    'd=sender.invalid',
    `s=${key.selector}`,
    `t=${at / 1000}`,
  ]) {
    t.true(signed.includes(` ${tag};`), tag);
  }
  t.notRegex(signed, /\bl=/, 'of the whole body');
});

test('a byte changed in the body or in a header that counts breaks the signature', async (t) => {
  const { verify, key } = await signer();
  const signed = sign(
    (await composeMime(toFields({ text: 'One hundred', replyTo: 'r@x.invalid' }))).raw,
    key,
    at,
  );
  for (const [from, to] of [
    ['One hundred', 'one hundred'],
    ['Subject: Hello', 'Subject: Hullo'],
    ['From: App', 'From: Bpp'],
    ['To: ann', 'To: bnn'],
    ['Reply-To: r', 'Reply-To: s'],
    ['<id@', '<ie@'],
    ['Date: Fri, 02', 'Date: Fri, 09'],
  ] as const) {
    const changed = Buffer.from(signed.toString('latin1').replace(from, to), 'latin1');
    t.false(changed.equals(signed), from);
    t.notDeepEqual(await verify(changed), ['pass'], from);
  }
});

test("the signature is to the byte what mailauth's own signer makes, whatever the message", async (t) => {
  const { key, pem } = await signer();
  const header = async (raw: Buffer) =>
    t.is(
      sign(raw, key, at).subarray(0, -raw.length).toString('latin1'),
      await signedByMailauth(raw, key.selector, pem),
    );
  for (const name of cases) await header((await composeMime(fieldsOf(name))).raw);
  const piece = fc.constantFrom(
    'a',
    'B',
    ' ',
    '  ',
    '\t',
    '.',
    '\r\n',
    '\r\n\r\n',
    ' \r\n',
    '\t\r\n',
    'é',
    '\0',
    ':',
  );
  const text = fc.array(piece, { maxLength: 30 }).map((pieces) => pieces.join(''));
  const word = fc.array(fc.constantFrom('a', ' ', '\t', '\r\n ', 'É', ':', '  '), { maxLength: 20 });
  await fc.assert(
    fc.asyncProperty(
      text,
      word,
      fc.constantFrom('Subject', 'LIST-id', 'X-Other'),
      async (body, words, name) => {
        const head = `From : a@sender.invalid\r\n${name}: x${words.join('')}x\r\nto:b@there.invalid\r\n`;
        await header(Buffer.from(`${head}\r\n${body}`));
      },
    ),
    { numRuns: 200 },
  );
});

test("a tree of parts becomes the bytes that the composer's own build gives", async (t) => {
  const line = fc.string({
    unit: fc.constantFrom('a', ' ', '\t', '=', '.', 'é', '用', '-', 'x'.repeat(30)),
    maxLength: 40,
  });
  const text = fc.oneof(
    fc.array(line, { maxLength: 12 }).map((lines) => lines.join('\r\n')),
    fc.array(line, { maxLength: 12 }).map((lines) => `${lines.join('\r\n')}\r\n`),
    fc
      .integer({ min: 65_400, max: 65_600 })
      .map((size) => `${'two é words '.repeat(4_000).padEnd(size - 4_002, 'y')}\r\n`),
    fc.constant('long lines of words, and dots. '.repeat(6_000)),
  );
  const file = fc.record({
    filename: fc.constantFrom('a.bin', 'ü b.txt', 'm.eml'),
    content: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
    contentTransferEncoding: fc.constant('base64' as const),
  });
  const mail = fc.record({
    from: fc.constant('a@sender.invalid'),
    text: fc.option(text, { nil: undefined }),
    html: fc.option(text, { nil: undefined }),
    attachments: fc.array(file, { maxLength: 3 }),
    newline: fc.constant('windows'),
  });
  await fc.assert(
    fc.asyncProperty(mail, async (fields) => {
      const root = new MailComposer(fields).compile();
      const own = await toBytes(root);
      t.true(own.equals(await root.build()));
    }),
    { numRuns: 200 },
  );
});

test('a key that cannot sign is an error, at every mail, and is not told', async (t) => {
  const { pem } = await signer();
  const keyOf = createKeyRing((sealed) => sealed);
  const { privateKey: other } = generateKeyPairSync('ed25519', {
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
