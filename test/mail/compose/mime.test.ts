/**
 * Fields to bytes. Each case is a pair in fixtures/compose: NAME.json has the fields, NAME.eml the exact bytes that they
 * become, with boundaries masked. A new case is a new pair. UPDATE_GOLDEN=1 rewrites the .eml files: read the diff.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import test from 'ava';
import fc from 'fast-check';
import MailComposer from 'nodemailer/lib/mail-composer';
import PostalMime, { decodeWords } from 'postal-mime';
import { cases, fieldsOf, folder, toFields, type Written } from '#lab/compose-cases.ts';
import { testWithProgram } from '#lab/needing.ts';
import { hasPython, type PythonPart, readWithPython } from '#lab/read-with-python.ts';
import { runs } from '#lab/runs.ts';
import { table } from '#lab/table.ts';
import { composeMime, type Fields, toBytes } from '#mail/compose/mime.ts';
import { partsOf, readTree } from '#mail/compose/mime-tree.ts';
import { decoded } from '#mail/compose/transfer-encoding.ts';

const rawOf = (fields: Fields) => toBytes(composeMime(fields).message);
const compose = (written: Written) => rawOf(toFields(written)).toString('latin1');

/** Boundaries are random; here they are numbered from 1. */
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

test('there are at least ten cases, and every .eml file has its fields', (t) => {
  t.true(cases.length >= 10);
  const messages = readdirSync(folder).filter((file) => file.endsWith('.eml'));
  t.deepEqual(
    messages.filter((file) => !cases.includes(basename(file, '.eml'))),
    [],
  );
});

/** A fault that no message may have, whatever the caller gave; null if there is none. */
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
const nasty: Record<string, Written> = Object.fromEntries(table('compose/nasty-fields'));

for (const [what, written] of Object.entries(nasty)) {
  test(`SMTP can carry the message: ${what}`, (t) => {
    t.is(faultOf(compose(written)), null);
  });
}

test('SMTP can carry every case', (t) => {
  for (const name of cases) t.is(faultOf(rawOf(fieldsOf(name)).toString('latin1')), null, name);
});

test("the caller's Date, Message-ID, Reply-To and Sender replace ours, in any letter case", (t) => {
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

test('a text file in ASCII is 7bit or quoted-printable, and every byte of it arrives', (t) => {
  const files: [content: string, encoding: string][] = [
    ['a', '7bit'],
    ['a \r\nb\r\n', '7bit'],
    ['.\r\nFrom b', '7bit'],
    ['a\nb\n', 'quoted-printable'],
    ['a\rb', 'quoted-printable'],
    ['\n\r\n \n', 'quoted-printable'],
    [`${long('=', 80)}\r\n`, 'quoted-printable'],
    [`${long('word ', 40)}\r\n`, 'quoted-printable'],
    [long('=', 20_000), 'base64'],
    ['é', 'base64'],
    ['a\0', 'base64'],
  ];
  for (const [content, encoding] of files) {
    const attachments = [{ filename: 'a.csv', text: content }];
    const raw = rawOf(toFields({ text: 'x', attachments }));
    const part = [...partsOf(readTree(raw)!)].find(({ isAttached }) => isAttached)!;
    t.is(part.encoding, encoding, content.slice(0, 20));
    const arrived = decoded(raw.subarray(part.head.bodyStart, part.end), part.encoding);
    t.is(arrived?.toString(), content, content.slice(0, 20));
  }
});

/**
 * postal-mime reads the lines of a text file with LF, and with one more at its end, unless it is base64: after a CR that the file
 * ends with, that makes a line end of it.
 */
function contentOf(type: string, content: Buffer): string {
  const bytes = content.toString('latin1');
  return type.startsWith('text/') ? bytes.replaceAll('\r\n', '\n').replace(/[\r\n]+$/, '') : bytes;
}

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
  long('word ', 30),
  long('x', 80),
  '\tx ',
);
const text = fc.array(line, { minLength: 1, maxLength: 12 }).map((lines) => `${lines.join('\r\n')}.`);
const address = fc.constantFrom('ann@there.invalid', '"a, b"@there.invalid', 'Ann@Straße.invalid');
const display = phrase.map((name) => name.replace(/ +/g, ' ').trim());
const named = fc.record({ name: fc.oneof(fc.constant(''), display), address });
const file = fc.record(
  {
    filename: phrase.map((name) => `${name}.pdf`),
    content: fc.uint8Array({ minLength: 1, maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
    contentType: fc.constantFrom('text/csv; charset=utf-8', 'image/png; name=other.png', 'image/png'),
    contentId: fc.constantFrom('logo', 'a.b@sender.invalid', "#!$%&'*+-/=?^_`{|}~"),
    disposition: fc.constantFrom('inline' as const, 'attachment' as const),
  },
  { requiredKeys: ['filename', 'content'] },
);
const mail = fc.record({
  from: display.map((name) => ({ name, address: 'a@s.invalid', domain: 's.invalid' })),
  to: fc.array(named, { minLength: 1, maxLength: 3 }),
  cc: fc.array(named, { maxLength: 3 }),
  replyTo: fc.array(named, { maxLength: 2 }),
  subject: phrase,
  content: fc.oneof(fc.record({ text }), fc.record({ html: text }), fc.record({ text, html: text })),
  attachments: fc.array(file, { maxLength: 3 }),
  invitation: fc.option(fc.record({ method: fc.constantFrom('REQUEST', 'CANCEL'), content: text })),
  headers: fc.record({ 'X-Some': phrase, References: fc.constantFrom('a@b', '<a@b> <c@d>') }),
});
type Mail = typeof mail extends fc.Arbitrary<infer Value> ? Value : never;

/** The same mail from our composer and from nodemailer's. */
async function bothOf({ content, invitation, ...some }: Mail): Promise<[ours: Buffer, theirs: Buffer]> {
  const fields = { ...some, ...content, messageId: 'id@postern.invalid', date: 0 };
  const theirs = new MailComposer({
    ...fields,
    attachments: some.attachments.map(({ contentId, disposition, ...one }) => {
      return { ...one, cid: contentId, contentDisposition: disposition };
    }),
    icalEvent: invitation ? { ...invitation, filename: 'invite.ics' } : undefined,
    messageId: '<id@postern.invalid>',
    date: new Date(0),
  });
  // nodemailer attaches the invitation after the other files.
  const invitations = invitation
    ? [
        {
          filename: 'invite.ics',
          content: Buffer.from(invitation.content),
          contentType: `text/calendar; method=${invitation.method}`,
        },
      ]
    : [];
  const ours = rawOf({ ...fields, attachments: [...some.attachments, ...invitations] });
  return [ours, await theirs.compile().build()];
}

test("a reader sees the same message as from nodemailer's composer", async (t) => {
  const read = async (raw: Buffer) => {
    const { headers, attachments, headerLines: _, ...rest } = await PostalMime.parse(raw);
    const files = attachments.map(({ content, ...about }) => ({
      ...about,
      content: contentOf(about.mimeType, Buffer.from(content as ArrayBuffer)),
    }));
    // Addresses are in the rest, as they were read: we encode a name that nodemailer quotes if it looks like an encoded word.
    const others = ['content-type', 'content-transfer-encoding', 'from', 'to', 'cc', 'reply-to'];
    const values = headers.filter(({ key }) => !others.includes(key));
    return { ...rest, files, values: values.map(({ key, value }) => `${key}: ${decodeWords(value)}`).sort() };
  };
  const property = fc.asyncProperty(mail, async (some) => {
    const [ours, theirs] = await bothOf(some);
    t.deepEqual(await read(ours), await read(theirs));
  });
  await fc.assert(property, { numRuns: runs(200) });
});

testWithProgram(hasPython)("Python's email reads the same tree of parts as from nodemailer", async (t) => {
  const pairs = await Promise.all(fc.sample(mail, runs(200)).map(bothOf));
  const trees = readWithPython(pairs.flat());
  const withLines = ({ children, content, ...part }: PythonPart): unknown => ({
    ...part,
    content: content === null ? null : contentOf(part.type, Buffer.from(content, 'latin1')),
    children: children?.map(withLines),
  });
  for (const [index, [ours]] of pairs.entries()) {
    const [mine, other] = [trees[2 * index]!, trees[2 * index + 1]!].map(withLines);
    t.deepEqual(mine, other, ours.toString());
  }
});
