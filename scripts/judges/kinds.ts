/** Kinds of mail: of the API, and submitted over SMTP as programs write them. */

/** The fields of an API send that kinds have; content is base64. */
export interface ApiMail {
  from: string;
  subject: string;
  html?: string;
  text?: string;
  headers?: Record<string, string>;
  cc?: string[];
  tracking?: { opens: boolean; clicks: boolean };
  attachments?: { filename: string; content: string; contentType?: string; contentId?: string }[];
}

interface Kind {
  name: string;
  /** The fields of an API send, or the lines of a message without To. */
  mail: ApiMail | string[];
  /** Only hosts with SMTPUTF8 can get it. */
  needsUtf8?: boolean;
}

const html =
  '<html><body><p>Your order 4711 is on its way.</p><p>Thank you for shopping with us.</p></body></html>';
const text = 'Your order 4711 is on its way.\n\nThank you for shopping with us.\n';
const base64 = (content: string) => Buffer.from(content).toString('base64');
const file = (filename: string, content: string, contentType?: string) => ({
  filename,
  content: base64(content),
  contentType,
});
const inner = 'From: Jörg <a@sender.invalid>\r\nSubject: Grüße\r\nMIME-Version: 1.0\r\n';
const innerText = `${inner}Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\nGrüße\r\n`;

const meeting = [
  'BEGIN:VCALENDAR',
  'VERSION:2.0',
  'PRODID:-//Shop//EN',
  'METHOD:REQUEST',
  'BEGIN:VEVENT',
  'UID:4711@sender.invalid',
  'DTSTAMP:20260102T030405Z',
  'DTSTART:20260103T100000Z',
  'SUMMARY:Delivery',
  'END:VEVENT',
  'END:VCALENDAR',
  '',
].join('\r\n');
export const invitationType = 'text/calendar; method=REQUEST';

const subjects: Record<string, string> = {
  plain: 'Your order 4711',
  umlauts: 'Grüße aus Köln',
  cyrillic: 'Ваш заказ 4711 отправлен',
  chinese: '您的订单已发货',
  emoji: '📬 Your order',
  long: 'Your order is on its way and '.repeat(12).trim(),
  'long word': `order-${'x'.repeat(300)}`,
  'long umlauts': 'Schöne Grüße und vielen Dank '.repeat(12).trim(),
  'look-alike': 'What =?utf-8?Q?this?= means',
  quotes: 'The "best" order, (really) <now>',
};
const froms: Record<string, string> = {
  address: 'shop@sender.invalid',
  name: 'The Shop <shop@sender.invalid>',
  comma: '"Shop, The" <shop@sender.invalid>',
  umlauts: 'Der Käseladen <shop@sender.invalid>',
  'at sign': '"Team @ Shop" <shop@sender.invalid>',
  'long name': `${'Käse und Brot '.repeat(8).trim()} <shop@sender.invalid>`,
};
const bodies: Record<string, object> = {
  text: { text },
  html: { html },
  both: { html, text },
  'umlauts in both': { html: html.replace('order', 'Bestellung für Jörg'), text: `Grüße\n${text}` },
  'chinese in both': {
    html: `<p>${'您的订单已发货。'.repeat(40)}</p>`,
    text: '您的订单已发货。\n'.repeat(20),
  },
  'long lines': { text: `${'word '.repeat(500)}\n`, html: `<p>${'word '.repeat(500)}</p>` },
  dots: { text: '.\n..\n.a\n \nFrom here\n' },
  'white space at line ends': { text: 'one  \ntwo\t\n\n\n' },
  'one line of 2000': { text: `${'x'.repeat(2000)}\n` },
  table: {
    html: `<table>${'<tr><td>Item</td><td>1.00</td></tr>'.repeat(30)}</table><p>Thanks for it all</p>`,
  },
};
const attachments: Record<string, ApiMail['attachments']> = {
  pdf: [file('invoice.pdf', '%PDF-1.4\n%âãÏÓ\n')],
  'ascii text': [file('notes.txt', 'one\ntwo\n')],
  'utf-8 text': [file('notes.txt', 'Grüße\n', 'text/plain; charset=utf-8')],
  csv: [file('items.csv', 'a;b\r\n1;2\r\n')],
  calendar: [file('invite.ics', 'BEGIN:VCALENDAR\r\nVERSION:2.0\r\nEND:VCALENDAR\r\n')],
  'a name with umlauts': [file('Rechnung für Jörg.pdf', '%PDF-1.4\n')],
  'a long name': [file(`${'very-long-'.repeat(20)}.pdf`, '%PDF-1.4\n')],
  'a message': [file('m.eml', 'From: a@b.invalid\r\nSubject: x\r\n\r\nHi\r\n', 'message/rfc822')],
  'a message with 8-bit text': [file('m.eml', innerText, 'message/rfc822')],
  'two files': [file('a.txt', 'a\n'), file('b.bin', '\0\x01')],
  'an image that the HTML shows': [{ ...file('logo.png', '\x89PNG\r\n', 'image/png'), contentId: 'logo' }],
  'an invitation': [file('invite.ics', meeting, invitationType)],
};
const headers: Record<string, Record<string, string>> = {
  unsubscribe: {
    'List-Unsubscribe': '<https://sender.invalid/u?id=4711>, <mailto:u@sender.invalid>',
    'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
    'List-Id': 'News <news.sender.invalid>',
  },
  thread: { References: '<a@sender.invalid> <b@sender.invalid>', 'In-Reply-To': '<b@sender.invalid>' },
  custom: { 'X-Campaign': 'Frühling', 'Feedback-ID': '1:2:3:shop', 'Auto-Submitted': 'auto-generated' },
};

const defaults = { from: 'The Shop <shop@sender.invalid>', subject: 'Your order 4711', html, text };

/** The domain with a second key, for Ed25519. */
export const twiceSigned = 'twice.invalid';
const linked = html.replace(
  '</body>',
  '<p><a href="https://shop.example/orders/4711">Your order</a></p></body>',
);

const api: Kind[] = [
  ...Object.entries(subjects).map(([name, subject]) => kind(`subject: ${name}`, { subject })),
  ...Object.entries(froms).map(([name, from]) => kind(`from: ${name}`, { from })),
  ...Object.entries(bodies).map(([name, body]) =>
    kind(`body: ${name}`, { html: undefined, text: undefined, ...body }),
  ),
  ...Object.entries(attachments).map(([name, list]) =>
    kind(`attached: ${name}`, {
      attachments: list,
      ...(list?.[0]?.contentId && { html: html.replace('<body>', '<body><img src="cid:logo" alt="Shop">') }),
    }),
  ),
  ...Object.entries(headers).map(([name, list]) => kind(`headers: ${name}`, { headers: list })),
  kind('tracked', { html: linked, tracking: { opens: true, clicks: true } }),
  kind('tracked, text alone', { html: undefined, tracking: { opens: true, clicks: true } }),
  // The host refuses none of them, so that each copy arrives.
  kind('several recipients', { cc: ['bea@there.invalid', 'cem@there.invalid'] }),
  kind('several recipients, tracked', {
    html: linked,
    cc: ['bea@there.invalid', 'cem@there.invalid'],
    tracking: { opens: true, clicks: true },
  }),
  kind('a second signature', { from: `Shop <shop@${twiceSigned}>` }),
  { ...kind('from: a UTF-8 address', { from: 'Jörg <jörg@sender.invalid>' }), needsUtf8: true },
];

function kind(name: string, fields: Partial<ApiMail>): Kind {
  return { name: `api, ${name}`, mail: { ...defaults, ...fields } };
}

const mime = ['From: The Shop <shop@sender.invalid>', 'Subject: Your order 4711', 'MIME-Version: 1.0'];
const plain = ['Content-Type: text/plain; charset=utf-8'];
const eightBit = [...plain, 'Content-Transfer-Encoding: 8bit'];
const multipart = (...parts: string[][]) => [
  ...mime,
  'Content-Type: multipart/mixed; boundary="=_b"',
  ...['Content-Transfer-Encoding: 8bit', '', 'Präambel'],
  ...parts.flatMap((part) => ['--=_b', ...part]),
  '--=_b--',
];
const ordinary = ['', 'Your order 4711 is on its way.', '', 'Thank you for shopping with us.'];
const greeting = ['', 'Grüße aus Köln, Ihre Bestellung 4711 ist unterwegs.'];

const submitted: Record<string, string[]> = {
  plain: [...mime, ...plain, ...ordinary],
  'no MIME': [mime[0]!, mime[1]!, ...ordinary],
  '8-bit text': [...mime, ...eightBit, ...greeting],
  '8-bit without a label': [...mime, ...plain, ...greeting],
  '8-bit without MIME': [mime[0]!, mime[1]!, ...greeting],
  'ASCII labelled 8bit': [...mime, ...eightBit, ...ordinary],
  'ASCII labelled binary': [...mime, ...plain, 'Content-Transfer-Encoding: binary', ...ordinary],
  '8-bit subject': [
    'From: shop@sender.invalid',
    'Subject: Grüße aus Köln',
    'MIME-Version: 1.0',
    ...plain,
    ...ordinary,
  ],
  '8-bit sender': ['From: Der Käseladen <shop@sender.invalid>', ...mime.slice(1), ...plain, ...ordinary],
  'quoted 8-bit sender': [
    'From: "Käse, Brot" <shop@sender.invalid>',
    ...mime.slice(1),
    ...plain,
    ...ordinary,
  ],
  '8-bit Cc': ['Cc: Jörg <joerg@there.invalid>, ann@there.invalid', ...mime, ...plain, ...ordinary],
  'folded with tabs': [...mime, 'X-Folded: one', '\ttwo', ...plain, ...ordinary],
  'quoted-printable': [
    ...mime,
    ...plain,
    'Content-Transfer-Encoding: quoted-printable',
    '',
    'Gr=C3=BC=C3=9Fe',
  ],
  base64: [...mime, ...plain, 'Content-Transfer-Encoding: base64', '', base64('Grüße\r\n')],
  'parts with 8-bit text': multipart(
    [...eightBit, ...greeting],
    ['Content-Type: text/html; charset=utf-8', '', '<p>Grüße</p>'],
  ),
  'an 8-bit file name': multipart(
    [...plain, ...ordinary],
    [
      'Content-Type: application/pdf; name="Grüße.pdf"',
      'Content-Transfer-Encoding: base64',
      'Content-Disposition: attachment; filename="Grüße.pdf"',
      '',
      base64('%PDF'),
    ],
  ),
  'a message inside': multipart(
    [...plain, ...ordinary],
    [
      'Content-Type: message/rfc822',
      'Content-Transfer-Encoding: 8bit',
      '',
      ...innerText.trimEnd().split('\r\n'),
    ],
  ),
  'Received before': [
    'Received: from cms.invalid by relay.invalid; Fri, 2 Jan 2026 03:04:05 +0000',
    ...mime,
    ...plain,
    ...ordinary,
  ],
  'odd white space': ['From:shop@sender.invalid', 'Subject:   Your order  ', ...plain, ...ordinary, '  ', ''],
};

const overSmtp: Kind[] = [
  ...Object.entries(submitted).map(([name, mail]) => ({ name: `submission, ${name}`, mail })),
  {
    name: 'submission, a UTF-8 address',
    mail: ['Reply-To: jörg@sender.invalid', ...mime, ...plain, ...ordinary],
    needsUtf8: true,
  },
];

export const kinds = [...api, ...overSmtp];
