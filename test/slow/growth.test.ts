/**
 * What reads a text from outside takes time that is linear in it: each is given texts of the smallest pieces that it looks for,
 * and texts that nearly match at each position, of one size and of four times that size.
 */
import test from 'ava';
import { readContent, readHtml } from '#front/dashboard/pages/email/email-content.ts';
import { linksIn } from '#front/dashboard/pages/email/links.ts';
import { addressTexts } from '#front/dialects/address-texts.ts';
import { MessageContent } from '#front/smtp/message-content.ts';
import { addressesIn } from '#front/submission/address-fields.ts';
import { senderOf } from '#front/submission/from-field.ts';
import { submittedResult } from '#front/submission/read-submitted.ts';
import { growsLinearly } from '#lab/cost.ts';
import { charsetNamed, encodingNamed, mediaTypeNamed } from '#mail/compose/ascii/part-labels.ts';
import { readHead } from '#mail/compose/head.ts';
import { parseAddresses, structureOf } from '#mail/compose/header-grammar.ts';
import { editedParts } from '#mail/compose/html-parts.ts';
import { readTree } from '#mail/compose/mime-tree.ts';
import { toSevenBit } from '#mail/compose/seven-bit.ts';
import { textFromHtml } from '#mail/compose/text-from-html.ts';
import { prepareTracking } from '#mail/compose/tracking/html-tracking.ts';
import { decoded, encodeText, toCrlf } from '#mail/compose/transfer-encoding.ts';
import { ruleFor } from '#mail/deliver/reply-rules/classify.ts';
import { dotStuffed } from '#mail/deliver/smtp-out/dot-stuffing.ts';
import { untracked } from '#mail/record/tracking/untracked.ts';
import { readMail } from '#mail/returned/parse/parse-bounce.ts';
import { readDmarc } from '#mail/returned/reports/dmarc-report.ts';
import { readTls } from '#mail/returned/reports/tls-report.ts';
import { reportAddresses } from '#operate/tls-reports/report-addresses.ts';
import { domainOf, parseMailbox, parsePhrase } from '#platform/values/address.ts';
import { parseReply } from '#platform/values/reply.ts';

const qp = 'Content-Type: text/html\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n';
const multipart = 'Content-Type: multipart/mixed; boundary=b\r\n\r\n';
const links = { read: () => null };
const submitted = {
  to: ['a@b.c'],
  requestId: 'r',
  requireTls: false,
  received: '',
  mayHaveBareLineEnds: true,
};

const readers: Record<string, (text: string) => unknown> = {
  address: (text) => [domainOf(text), parseMailbox(text), parsePhrase(text), domainOf(`a@${text}`)],
  'list of addresses': (text) => [addressTexts(text), parseAddresses(text), addressesIn(text)],
  'From field': senderOf,
  'structured field': (text) =>
    ['references', 'list-unsubscribe', 'list-id', 'list-post', 'list-x'].map((name) =>
      structureOf(name)!.write(text),
    ),
  header: (text) => readHead(Buffer.from(text)),
  'header field': (text) => readHead(Buffer.from(`Subject: ${text}\r\n\r\n`)),
  'MIME tree': (text) => readTree(Buffer.from(multipart + text)),
  'submitted message': (text) => submittedResult(Buffer.from(`From: a@b.c\r\n\r\n${text}`), submitted),
  'submitted parts': (text) =>
    submittedResult(Buffer.from(`From: a@b.c\r\n${multipart}--b\r\n\r\n${text}`), submitted),
  'message after DATA': (text) => new MessageContent().take(Buffer.from(text)),
  'message to send': (text) => dotStuffed(Buffer.from(text)),
  'Content-Type': (text) => readTree(Buffer.from(`Content-Type: text/plain; ${text}\r\n\r\n`)),
  'quoted-printable': (text) => decoded(Buffer.from(text), 'quoted-printable'),
  base64: (text) => decoded(Buffer.from(text), 'base64'),
  encoding: (text) => encodeText(toCrlf(text)),
  'fields as ASCII': (text) =>
    [
      'Subject',
      'To',
      'References',
      'List-Unsubscribe',
      'List-Id',
      'Content-Type',
      'Received',
      'Keywords',
    ].map((name) => toSevenBit(Buffer.from(`${name}: é ${text}\r\n\r\nx`))),
  'labels of a part': (text) => [charsetNamed(text), encodingNamed(text), mediaTypeNamed(text)],
  'report of a delivery': (text) =>
    toSevenBit(Buffer.from(`Content-Type: message/delivery-status\r\n\r\né${text}`)),
  'seven bit': (text) => toSevenBit(Buffer.from(`Subject: é\r\nContent-Type: text/plain\r\n\r\n${text}é`)),
  'HTML with tracking': (text) => {
    const tracker = { pixel: () => 'p', link: () => 'l' };
    return prepareTracking(text, { opens: true, clicks: true })?.(tracker);
  },
  'HTML as text': textFromHtml,
  'HTML without tracking': (text) => untracked(text, links),
  'links of HTML': linksIn,
  'HTML part': (text) =>
    editedParts<null>(
      Buffer.from(qp + text),
      ({ html }) =>
        () =>
          html,
    )?.(null),
  'email page': (text) => [
    readContent(Buffer.from(qp + text)),
    readHtml(Buffer.from(qp + text), (html) => html),
  ],
  'returned mail': (text) =>
    readMail(Buffer.from(`Subject: ${text.slice(0, 2000)}\r\n\r\n${text}`), 'return-path'),
  'DMARC report': (text) => readDmarc(`<feedback>${text}</feedback>`),
  'TLS report': (text) => readTls(`{"a":"${text}"}`),
  'SMTP reply': (text) => parseReply(`550 ${text}`),
  'reply rule': (text) => ruleFor('rcpt', { code: 550, enhanced: null, text: text.slice(0, 4000) }),
  'TLS report record': (text) => reportAddresses([`v=TLSRPTv1; rua=${text}`]),
};

const pieces = [
  ...' \t\n,;:<>"\'()\\@=.&%-_a1é',
  '\r\n',
  ' x',
  '\tx',
  ' \r\n',
  'a@b.c,',
  '"a" <a@b.c>, ',
  '<a',
  '<a>',
  '</a>',
  '<a href="',
  '<a href=http://a.b>x</a>',
  '<!--',
  '<b><p>',
  '&amp',
  '=?utf-8?B?YQ==?=',
  '=?utf-8?Q?',
  '=3D',
  '=\r\n',
  '\r\n--b',
  '\r\n--b\r\n',
  '\r\n--b--',
  ';a=b',
  ';f*0=a',
  'A: b\r\n',
  '\r\n b',
  'http://a.b/t/c/',
  '<img src="x/t/o/',
  'mailto:a@b.c,',
  'Your message\n',
  'Final-Recipient: rfc822; a@b.c\r\n',
];

const size = 16 * 1024;

for (const [name, read] of Object.entries(readers)) {
  // One after the other: what another test computes while this one waits would count.
  test.serial(`linear: ${name}`, async (t) => {
    for (const piece of pieces) {
      const work = (length: number) => read(`x${piece.repeat(Math.ceil(length / piece.length))}\0x`);
      await growsLinearly(t, work, { size, what: JSON.stringify(piece) });
    }
  });
}
