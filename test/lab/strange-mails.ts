/**
 * Strange mails, always the same one for a number: MIME whose parts, boundaries, encodings, charsets and fields are not what they
 * say, as broken programs and people with bad intent write it. Lines end with CRLF; everything else may be anything.
 */

/** mulberry32. */
function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const types = [
  ...[
    'text/plain',
    'text/html',
    'TEXT/PLAIN',
    'text',
    '',
    'text/plain;',
    '/',
    'image/png',
    'application/octet-stream',
  ],
  ...[
    'message/rfc822',
    'message/delivery-status',
    'multipart/mixed',
    'multipart/alternative',
    'multipart/related',
  ],
  ...[
    'multipart/digest',
    'multipart/signed',
    'multipart/report',
    'application/ms-tnef',
    'text/calendar; method=REQUEST',
  ],
];
const boundaries = ['b', 'b b', 'x'.repeat(80), 'b"', '', '----=_Part', 'é'];
const charsets = [
  'utf-8',
  'iso-8859-1',
  'iso-2022-jp',
  'utf-7',
  'x-unknown',
  '"utf-8',
  'gb18030',
  '',
  'utf-16',
  'koi8-r',
];
const encodings = [
  '7bit',
  '8bit',
  'base64',
  'quoted-printable',
  'binary',
  'x-uuencode',
  'BASE64 ',
  '',
  'base-64',
  '=?',
];
const fields = [
  ...[
    'From',
    'To',
    'Subject',
    'Date',
    'Message-ID',
    'In-Reply-To',
    'References',
    'Reply-To',
    'Cc',
    'Received',
    'Sender',
  ],
  ...[
    'DKIM-Signature',
    'ARC-Seal',
    'ARC-Message-Signature',
    'Authentication-Results',
    'Content-Type',
    'MIME-Version',
  ],
  ...[
    'List-Id',
    'Auto-Submitted',
    'X-Empty',
    'Content-Disposition',
    'Content-ID',
    'Return-Path',
    'Precedence',
  ],
];
const values = [
  ...[
    'ann@there.invalid',
    '<ann@there.invalid',
    'a@b, c@d;',
    '"unclosed',
    '(((((',
    '=?utf-8?b?////?=',
    '=?utf-8?q?=ZZ?=',
  ],
  ...[
    '=?x?y?z?=',
    '<<>>',
    '@',
    '<>',
    'undisclosed-recipients:;',
    'Sat, 99 Foo 20000 99:99:99 +9999',
    '1',
    ' ',
    '\t',
  ],
  ...[
    'v=1; a=rsa-sha256; d=there.invalid; s=one; h=from; bh=; b=',
    'i=1; a=rsa-sha256; cv=none; d=; s=; b=x',
    'v=1;;;;=;',
  ],
  ...[
    'multipart/mixed; boundary=',
    'multipart/mixed; boundary="b',
    "text/plain; charset*=utf-8''%ff%",
    'a; b*0=1; b*2=3',
  ],
  ...[
    "attachment; filename*=utf-8'en'%E2%82",
    'attachment; filename="../../etc/passwd"',
    'inline; filename=""',
    '\0',
    '\xff\xfe',
  ],
];
const lines = [
  ...[
    'Hello',
    '',
    '.',
    '..',
    '--',
    '--b',
    '--b--',
    '--b --',
    '-- ',
    'From nobody Sat Nov 28',
    '> quoted',
    'begin 644 x',
    'end',
  ],
  ...[
    '=',
    '=3',
    '=E9=',
    '=00',
    'SGVsbG8=',
    '====',
    'SGVsbG8',
    '\0\0\0',
    '\xc3',
    '\xff\xfe\0',
    '\x1b$B',
    '+AGE-',
    '<script>',
    '<p',
  ],
  ...[
    '<!--',
    '&#x110000;',
    'Content-Type: text/html',
    'Subject: not a header',
    ' folded',
    'On Sat, Ann wrote:',
  ],
];

export function strangeMail(number: number): Buffer {
  const random = randomOf(number);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
  const chance = (of: number) => random() < of;
  const times = (max: number) => Math.floor(random() * (max + 1));
  const repeated = <T>(count: number, make: () => T): T[] => Array.from({ length: count }, make);

  const text = () =>
    chance(0.02) ? pick(lines).repeat(times(3000)) : repeated(times(4), () => pick(lines)).join(' ');

  function field(): string {
    const name = chance(0.05) ? pick(['', ' Odd', 'No colon', 'X Y', 'é', '\0']) : pick(fields);
    const value = chance(0.3) ? text() : pick(values);
    const fold = chance(0.2) ? '\r\n ' : chance(0.02) ? '\r\n\t\r\n ' : ' ';
    return `${name}${chance(0.03) ? '' : ':'}${fold}${value}`;
  }

  /** The header of a part; some fields are missing. */
  function headOf(type: string, boundary: string): string[] {
    const parameters = chance(0.8) ? `; boundary="${boundary}"` : '';
    const own = [
      `Content-Type: ${type}; charset=${pick(charsets)}${parameters}`,
      `Content-Transfer-Encoding: ${pick(encodings)}`,
      `Content-Disposition: ${pick(values)}`,
    ];
    const kept = [0.85, 0.6, 0.3].map((of) => chance(of));
    return [...own.filter((_, index) => kept[index]), ...repeated(times(2), field)];
  }

  function multipart(depth: number): string {
    const boundary = pick(boundaries);
    const head = headOf(pick(types.filter((type) => type.startsWith('multipart'))), boundary);
    // What is written may be another one than what was said.
    const written = chance(0.9) ? boundary : 'other';
    const parts = repeated(times(4), () => `--${written}\r\n${part(depth - 1)}`);
    const end = chance(0.7) ? [`--${written}--`] : [];
    return [...head, '', ...parts, ...end].join('\r\n');
  }

  function part(depth: number): string {
    if (depth > 0 && chance(0.5)) return multipart(depth);
    const inside = repeated(times(chance(0.02) ? 2000 : 8), () => (chance(0.1) ? text() : pick(lines)));
    const empty = chance(0.95) ? [''] : [];
    return [...headOf(pick(types), pick(boundaries)), ...empty, ...inside].join('\r\n');
  }

  const top = repeated(times(chance(0.02) ? 600 : 8), field);
  const depth = chance(0.03) ? 14 : times(3);
  const whole = [...top, part(depth), ''].join('\r\n');
  // Some are cut off, some have no header, some are bytes at random.
  if (chance(0.05))
    return Buffer.from(
      `${whole.slice(0, Math.floor(random() * whole.length)).replace(/\r?$/, '')}\r\n`,
      'latin1',
    );
  if (chance(0.03))
    return Buffer.from(
      `${repeated(times(400), () => String.fromCharCode(times(255)))
        .join('')
        .replace(/[\r\n]/g, '')}\r\n`,
      'latin1',
    );
  return Buffer.from(whole, 'latin1');
}
