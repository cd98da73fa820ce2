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
import PostalMime, { decodeWords } from 'postal-mime';
import { newDkimKey } from '../../src/accounts/domains.ts';
import { headerFault } from '../../src/compose/custom-headers.ts';
import { composeMime, type Fields, type MimeMessage, toBytes } from '../../src/compose/mime.ts';
import { createKeyRing, type Signer, signatures } from '../../src/compose/sign.ts';
import { quotedPrintable } from '../../src/compose/transfer-encoding.ts';
import { parseMailbox } from '../../src/mail/address.ts';

const folder = join(import.meta.dirname, '../fixtures/compose');
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
const rawOf = (fields: Fields) => toBytes(composeMime(fields).message);
const compose = (written: Written) => rawOf(toFields(written)).toString('latin1');

/** Boundaries are at random; here they count from 1. */
function masked(raw: Buffer): string {
  const seen: string[] = [];
  return raw.toString('latin1').replace(/(?<==_)[0-9a-f-]{36}/g, (boundary) => {
    if (!seen.includes(boundary)) seen.push(boundary);
    return `at-random-${seen.indexOf(boundary) + 1}`;
  });
}

for (const name of cases) {
  test(`composed: ${name}`, (t) => {
    const raw = rawOf(fieldsOf(name));
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
  test(`on the wire there are lines that SMTP can carry: ${what}`, (t) => {
    t.is(faultOf(compose(written)), null);
  });
}

test('every case too has lines that SMTP can carry', (t) => {
  for (const name of cases) t.is(faultOf(rawOf(fieldsOf(name)).toString('latin1')), null, name);
});

test("Date, Message-ID, Reply-To and Sender of the caller's replace ours, in any letter case", (t) => {
  const { message: composed, messageId } = composeMime(
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
  const message = toBytes(composed).toString('latin1');
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

test("what is read in the message is what nodemailer's composer would have made of it", async (t) => {
  const word = fc.constantFrom(
    ...['a', 'Kölner', '用户', ' ', '"', '\\', ',', '=?', 'x'.repeat(40), '😀', "it's", ';', '.'],
  );
  const phrase = fc.array(word, { minLength: 1, maxLength: 12 }).map((words) => `x${words.join('')}.`);
  const line = fc.constantFrom(
    'a',
    '',
    ' ',
    'é用',
    '.',
    '=',
    'From me',
    'word '.repeat(30),
    'x'.repeat(80),
    '\tx ',
  );
  const text = fc.array(line, { minLength: 1, maxLength: 12 }).map((lines) => `${lines.join('\r\n')}.`);
  const address = fc.constantFrom('ann@there.invalid', '"a, b"@there.invalid', 'Ann@Straße.invalid');
  const file = fc.record({
    filename: phrase.map((name) => `${name}.pdf`),
    content: fc.uint8Array({ minLength: 1, maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
    contentType: fc.constantFrom(undefined, 'text/csv; charset=utf-8', 'image/png; name=other.png'),
  });
  const mail = fc.record({
    from: phrase.map((name) => ({
      name: name.replace(/ +/g, ' ').trim(),
      address: 'a@s.invalid',
      domain: 's.invalid',
    })),
    to: fc.array(address, { minLength: 1, maxLength: 3 }),
    subject: phrase,
    text,
    html: fc.option(text, { nil: undefined }),
    attachments: fc.array(file, { maxLength: 2 }),
    headers: fc.record({ 'X-Some': phrase, References: fc.constantFrom('a@b', '<a@b> <c@d>') }),
  });
  const read = async (raw: Buffer) => {
    const { headers, attachments, headerLines: _, ...rest } = await PostalMime.parse(raw);
    const files = attachments.map(({ content, ...about }) => ({
      ...about,
      content: Buffer.from(content as ArrayBuffer),
    }));
    const values = headers.filter(({ key }) => !['content-type', 'content-transfer-encoding'].includes(key));
    return { ...rest, files, values: values.map(({ key, value }) => `${key}: ${decodeWords(value)}`).sort() };
  };
  const property = fc.asyncProperty(mail, async (some) => {
    const fields = { ...some, messageId: 'id@postern.invalid', date: 0 };
    const to = some.to.map((one) => ({ name: '', address: one }));
    const theirs = new MailComposer({ ...fields, to, messageId: '<id@postern.invalid>', date: new Date(0) });
    t.deepEqual(await read(rawOf(fields)), await read(await theirs.compile().build()));
  });
  await fc.assert(property, { numRuns: 200 });
});

test('quoted-printable reads back as it was, in lines of 76, with no character cut in two', (t) => {
  const unit = fc.constantFrom(
    'a',
    ' ',
    '\t',
    '=',
    '.',
    'é',
    '用',
    '😀',
    '\0',
    '\r\n',
    'x'.repeat(74),
    'y'.repeat(30),
  );
  const text = fc.array(unit, { maxLength: 40 }).map((units) => units.join(''));
  const property = fc.property(text, (given) => {
    const encoded = quotedPrintable(Buffer.from(given)).toString('latin1');
    for (const line of encoded.split('\r\n')) {
      t.true(line.length <= 76, line);
      t.regex(line, /^(?:[\t\x20-\x3c\x3e-\x7e]|=[0-9A-F]{2})*=?$/);
      t.notRegex(line, /[ \t]$/);
      t.notRegex(line, /^=[89AB]/);
    }
    const bytes = encoded
      .replaceAll('=\r\n', '')
      .replace(/=(..)/g, (_, hex) => String.fromCharCode(parseInt(hex, 16)));
    t.is(Buffer.from(bytes, 'latin1').toString(), given);
  });
  fc.assert(property, { numRuns: 1000 });
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

const signed = (message: MimeMessage, key: Signer) =>
  toBytes({ ...message, fields: [...signatures(message, key, at), ...message.fields] });

test('every case, signed, verifies', async (t) => {
  const { verify, key } = await signer();
  for (const name of cases) {
    const { message } = composeMime(fieldsOf(name));
    t.deepEqual(await verify(signed(message, key)), ['pass'], name);
    t.regex(signatures(message, key, at)[0]!.text, /^DKIM-Signature: (?:[^\r\n]+\r\n[ \t])*[^\r\n]+$/, name);
  }
});

test('the signature says who signed, how, and when', async (t) => {
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
  t.notRegex(unfolded, /\bl=/, 'of the whole body');
});

test('a byte changed in the body or in a header that counts breaks the signature', async (t) => {
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

test("the signature is to the byte what mailauth's own signer makes, whatever the message", async (t) => {
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
    { numRuns: 200 },
  );
});

test('a key that cannot sign is an error, at every mail, and is not told', async (t) => {
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
