/** Mails for real receivers: a plain one, and some that a mail server could damage. */

const bytes = (count: number) =>
  Buffer.from(Array.from({ length: count }, (_, at) => (at * 31) % 256)).toString('base64');

/** Dots and a line of the maximum length (RFC 5322), in the body and in an attached message, which may not be encoded. */
const awkward = ['.', '..', '.hidden', 'x'.repeat(998), '. .', '', '.'].join('\r\n');

/** Mails by the local part of the recipient. */
export const mails: Record<string, object> = {
  plain: { subject: 'Plain text', text: 'Hello,\n\nall of this is plain.\n' },
  rich: {
    subject: 'Grüße aus Köln, 你好, 📬',
    html: '<p>Schöne <b>Grüße</b> &amp; 你好</p>',
    text: 'Schöne Grüße und 你好',
    attachments: [{ filename: 'Bücher.bin', content: bytes(64 * 1024) }],
  },
  dots: {
    subject: 'Dots and long lines',
    text: `${awkward}\r\n${'long '.repeat(1000)}\r\n.`,
    attachments: [
      {
        filename: 'forwarded.eml',
        contentType: 'message/rfc822',
        content: Buffer.from(`From: a@sender.invalid\r\nSubject: within\r\n\r\n${awkward}\r\n`).toString(
          'base64',
        ),
      },
    ],
  },
  large: {
    subject: 'An attachment of 200 KB',
    text: 'See the attachment.',
    attachments: [{ filename: 'large.bin', content: bytes(200 * 1024) }],
  },
};
