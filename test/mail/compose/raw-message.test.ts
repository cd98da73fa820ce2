/** Messages that the caller gave whole: what is read from them, and that nothing but tracking changes them. */
import { createPrivateKey } from 'node:crypto';
import test from 'ava';
import fc from 'fast-check';
import { dkimVerify } from 'mailauth';
import { costsAtMost } from '#lab/cost.ts';
import { dkimKey } from '#lab/dkim.ts';
import { partOf } from '#lab/mail.ts';
import { runs } from '#lab/runs.ts';
import { table } from '#lab/table.ts';
import { maxFields, maxHeadLength, readHead } from '#mail/compose/head.ts';
import { hasLongLine } from '#mail/compose/long-lines.ts';
import { partsOf, readTree } from '#mail/compose/mime-tree.ts';
import { composeRaw } from '#mail/compose/raw-message.ts';
import { decoded } from '#mail/compose/transfer-encoding.ts';

const signer = {
  domain: 'sender.invalid',
  selector: dkimKey.selector,
  privateKey: createPrivateKey(dkimKey.privateKey),
};
const tracker = {
  pixel: () => 'http://t.invalid/o',
  link: (target: string) => `http://t.invalid/c?${target}`,
};
const on = { opens: true, clicks: true, trackers: [tracker] };

const head = ['From: a@sender.invalid', 'Date: Fri, 02 Jan 2026 03:04:05 +0000', 'Message-ID: <1@x.invalid>'];

/** The message that goes out, without its signature. */
function composed(lines: string[], tracking = on): string {
  const raw = Buffer.from(`${lines.join('\r\n')}\r\n`, 'latin1');
  const given = { raw, messageId: '1@x.invalid', date: Date.UTC(2026, 0, 2, 3, 4, 5) };
  const { messages } = composeRaw(given, tracking, signer);
  const text = messages[0]!.toString('latin1');
  return text.slice(text.indexOf('\r\nFrom:') + 2);
}

const link = '<a href="https://a.invalid/x?a=1&amp;b=2">x</a>';
const tracked = '<a href="http://t.invalid/c?https://a.invalid/x?a=1&amp;b=2">x</a>';
const pixel = '<img src="http://t.invalid/o"';
const html = (...more: string[]) => [...head, 'Content-Type: text/html; charset=utf-8', ...more];

test('an unencoded body stays as it is except for its links and the pixel', async (t) => {
  const out = composed([...html('Content-Transfer-Encoding: 7bit'), '', `Hello ${link}`]);
  t.true(out.startsWith([...html('Content-Transfer-Encoding: 7bit'), '', `Hello ${tracked}`].join('\r\n')));
  t.true(out.includes(pixel));
  t.true(out.endsWith('\r\n'));
});

test('base64 and quoted-printable are decoded, edited and encoded again', async (t) => {
  const base64 = Buffer.from(`Grüße ${link}`).toString('base64');
  const out = composed([...html('Content-Transfer-Encoding: base64'), '', base64]);
  t.regex(
    partOf(out, 'text/html'),
    /^Grüße <a href="http:\/\/t\.invalid\/c\?https:\/\/a\.invalid\/x\?a=1&amp;b=2">/,
  );
  const printable = `Gr=C3=BC=C3=9Fe <a href=3D"https://a.invalid/x?a=3D1&amp;=\r\nb=3D2">x</a>`;
  const again = composed([...html('Content-Transfer-Encoding: quoted-printable'), '', printable]);
  t.true(partOf(again, 'text/html').startsWith(`Grüße ${tracked}`));
  t.true(again.split('\r\n').every((line) => line.length <= 76 || /^[\w-]+:/.test(line)));
});

test('a body with a line that becomes too long is encoded, and its part names the encoding', async (t) => {
  const out = composed([
    ...html('Content-Transfer-Encoding: 7bit', 'X-After: 1'),
    '',
    `${'x'.repeat(940)}${link}`,
  ]);
  t.deepEqual(out.match(/^Content-Transfer-Encoding: .*/gim), [
    'Content-Transfer-Encoding: quoted-printable',
  ]);
  t.true(out.includes('X-After: 1\r\n'));
  t.true(partOf(out, 'text/html').includes(tracked));
});

const multipart = (type: string, ...parts: string[][]) => [
  ...[...head, 'MIME-Version: 1.0', `Content-Type: ${type}; boundary="=_b"`, '', 'preamble', ''],
  ...parts.flatMap((part) => ['--=_b', ...part]),
  ...['--=_b--', 'epilogue'],
];
const htmlPart = ['Content-Type: text/html', '', link];

test('in a multipart, only the HTML is edited, and there is one pixel', async (t) => {
  const lines = multipart('multipart/alternative', ['', 'https://a.invalid/'], htmlPart, htmlPart);
  const out = composed(lines);
  const expected = lines.join('\r\n').replaceAll(link, tracked);
  t.is(out.replace(/<img [^>]*>/, ''), `${expected}\r\n`);
});

const untouched: Record<string, string[]> = Object.fromEntries(table('compose/untouched-html'));

for (const [name, lines] of Object.entries(untouched)) {
  test(`HTML that is not edited: ${name}`, (t) => {
    t.is(composed(lines), `${lines.join('\r\n')}\r\n`);
  });
}

test('in a single-byte character set, other than ASCII characters stay, and links with them are not tracked', async (t) => {
  const odd = '<a href="https://a.invalid/gr\xfc\xdfe">y</a>';
  const out = composed([
    ...head,
    'Content-Type: text/html; charset=iso-8859-1',
    '',
    `Gr\xfc\xdfe ${link} ${odd}`,
  ]);
  t.regex(out, /^Content-Transfer-Encoding: quoted-printable$/m);
  t.is(
    decoded(Buffer.from(out.split('\r\n\r\n')[1]!), 'quoted-printable')!
      .toString('latin1')
      .split('\r\n<img')[0],
    `Gr\xfc\xdfe ${tracked} ${odd}`,
  );
});

test('the signature verifies however a header is folded, and with bytes that cannot be ASCII', async (t) => {
  const odd = [
    'Subject: Hello\t (folded)',
    ' and more',
    'To: <gr\xc3\xbc\xc3\x9fe@there.invalid>',
    'MIME-Version: 1.0',
    'cc:x@y.invalid',
  ];
  const raw = Buffer.from([...head, ...odd, '', 'Hello  \t', '', ''].join('\r\n'), 'latin1');
  const { messages } = composeRaw(
    { raw, messageId: '1@x.invalid', date: Date.now() },
    { ...on, opens: false },
    signer,
  );
  t.true(messages[0]!.includes('\r\nTo: gr\xc3\xbc\xc3\x9fe@there.invalid\r\n', 0, 'latin1'));
  const resolver = async () => [[`v=DKIM1; k=rsa; p=${dkimKey.publicKey}`]];
  const { results } = await dkimVerify(messages[0]!, { resolver });
  t.is(results[0]!.status.result, 'pass');
});

test('nothing is edited if tracking is off or there is no body', async (t) => {
  const off = { opens: false, clicks: false, trackers: [tracker] };
  t.is(composed([...html(), '', link], off), [...html(), '', link, ''].join('\r\n'));
  t.is(composed(head), [...head, '', ''].join('\r\n'));
});

const piece = fc.constantFrom(
  '\r\n',
  '--b',
  '--b--',
  '--c',
  'Content-Type: multipart/mixed; boundary=b\r\n',
  ' ',
  'x: y\r\n',
  'Content-Type: multipart/mixed; boundary="c"\r\n',
  'Content-Type: text/html\r\n',
  ':',
  '\0',
  'é',
  '<a href="http://a.invalid">',
);

test('any bytes parse to a tree of nested, ordered parts without an error', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 60 }), async (pieces) => {
      const raw = Buffer.from(pieces.join(''));
      const tree = readTree(raw);
      for (const { start, end, head: own, children } of tree ? partsOf(tree) : []) {
        t.true(start <= own.end && own.end <= own.bodyStart && own.bodyStart <= Math.max(end, own.bodyStart));
        let at = start;
        for (const child of children) {
          t.true(at <= child.start && child.start <= child.end && child.end <= end);
          at = child.end;
        }
      }
      const { messages } = composeRaw({ raw, messageId: 'x@y', date: 0 }, on, signer);
      t.true(messages[0]!.length > 0);
    }),
    { numRuns: runs(300) },
  );
});

test('hostile nesting and splitting is given up quickly', async (t) => {
  const nested = Array.from(
    { length: 50_000 },
    (_, n) => `Content-Type: multipart/mixed; boundary=b${n}\r\n\r\n--b${n}\r\n`,
  );
  const cut = `Content-Type: multipart/mixed; boundary=b\r\n\r\n${'--b\r\n\r\n'.repeat(1_000_000)}`;
  await costsAtMost(t, 5_000, () => {
    t.is(readTree(Buffer.from(nested.join(''))), null);
    t.is(readTree(Buffer.from(cut)), null);
  });
});

/** Ten searches of the whole message, for patterns that nearly match at each byte. */
test('long delimiters that nearly match everywhere are searched in linear time, and still split', async (t) => {
  const boundary = (level: number) => `${level}${'a'.repeat(800)}`;
  const open = (level: number) =>
    `Content-Type: multipart/mixed; boundary="${boundary(level)}"\r\n\r\n--${boundary(level)}\r\n`;
  const opened = Array.from({ length: 9 }, (_, level) => open(level)).join('');
  const raw = Buffer.from(`${opened}\r\n${`${'a'.repeat(900)}\r\n`.repeat(3_000)}`);
  await costsAtMost(t, 1_000, () => t.is([...partsOf(readTree(raw)!)].length, 10));

  const [long, other] = ['', 'b'].map((last) => 'a'.repeat(70) + last);
  const two = `Content-Type: multipart/mixed; boundary="${other}"\r\n\r\n--${long}\r\n\r\n--${other}\r\n\r\nx\r\n--${other}--\r\n`;
  const [only, ...others] = readTree(Buffer.from(two))!.children;
  t.is(two.slice(only!.start, only!.end), '\r\nx');
  t.deepEqual(others, []);
});

test('a line of more than 998 bytes is found wherever it is, and a million lines are read at once', async (t) => {
  const isLong = (text: string) => text.split('\r\n').some((line) => line.length > 998);
  const lines = fc.array(
    fc.constantFrom('', 'a', '\r', '\n', 'a'.repeat(997), 'a'.repeat(998), 'a'.repeat(999)),
  );
  fc.assert(
    fc.property(lines, (pieces) => {
      const text = pieces.join('\r\n');
      t.is(hasLongLine(Buffer.from(text)), isLong(text));
    }),
  );
  const empty = Buffer.from('\r\n'.repeat(3_000_000));
  await costsAtMost(t, 100, () => t.false(hasLongLine(empty)));
});

test('a header is read to the byte: folds, labels, lines that are no field', (t) => {
  const raw = Buffer.from('From: a\r\n b\r\nx-ODD:c\r\nnonsense\r\n\r\nbody: no\r\n');
  const { fields, end, bodyStart, stray } = readHead(raw);
  t.deepEqual(
    fields.map(({ label, value, start, end }) => [label, value, raw.toString('latin1', start, end)]),
    [
      ['From', 'a b', 'From: a\r\n b\r\n'],
      ['x-ODD', 'c', 'x-ODD:c\r\n'],
    ],
  );
  t.is(stray, 'nonsense');
  t.is(raw.toString('latin1', end, bodyStart), '\r\n');
});

test('a header beyond the limits is not read, however it ends', (t) => {
  const first = 'A: b\r\n';
  const long = (bytes: number) => `B: ${'x'.repeat(bytes - 'B: \r\n'.length)}\r\n`;
  const folded = `B: x\r\n${' x\r\n'.repeat(maxHeadLength)}`;
  const room = maxHeadLength - first.length;
  const cases: [text: string, fields: number, isTooLarge: boolean][] = [
    [first + long(room), 2, false],
    [first + long(room + 1), 1, true],
    [first + long(room + 1).trimEnd(), 2, false],
    [first + folded, 1, true],
    [first.repeat(maxFields), maxFields, false],
    [first.repeat(maxFields + 1), maxFields, true],
  ];
  for (const [text, count, isTooLarge] of cases)
    for (const end of ['', '\r\n', '\r\nbody\r\n']) {
      const head = readHead(Buffer.from(text.endsWith('\n') ? text + end : text));
      t.is(head.fields.length, count);
      t.is(head.isTooLarge, isTooLarge);
      if (isTooLarge) t.is(head.end, head.fields.length * first.length, 'that of the first field not read');
    }
});

test('the signature verifies with as many fields as may be, and what is added to them', async (t) => {
  const full = [...head.slice(0, 1), ...Array<string>(maxFields - 1).fill(`X-A: ${'é'.repeat(50)}`)];
  const raw = Buffer.from([...full, '', 'Body', ''].join('\r\n'), 'latin1');
  const given = { raw, messageId: '1@x.invalid', date: Date.now() };
  const { messages } = composeRaw(given, { ...on, opens: false, clicks: false }, signer);
  const record = [[`v=DKIM1; k=rsa; p=${dkimKey.publicKey}`]];
  const { results } = await dkimVerify(messages[0]!, { resolver: async () => record });
  t.is(results[0]!.status.result, 'pass');
});
