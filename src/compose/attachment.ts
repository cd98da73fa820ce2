/** An attached file as a part of the message. The parameters of its headers are nodemailer's (RFC 2231). */
import { buildHeaderValue, detectMimeType, parseHeaderValue } from '../vendor/nodemailer.ts';
import { toCrlf } from './crlf.ts';
import { encodedText, field } from './field.ts';
import { leaf, type MimePart } from './part.ts';
import { base64, type Encoded } from './transfer-encoding.ts';

export interface Attachment {
  filename: string;
  content: Buffer;
  contentType?: string;
}

export function attached({ filename, content, contentType }: Attachment): MimePart {
  const { type, params } = typeOf(contentType || detectMimeType(filename));
  const named = buildHeaderValue({ value: type, params });
  return leaf(
    `${named}; name=${parameter(encodedText(filename))}`,
    encoded(type, content),
    field('Content-Disposition', buildHeaderValue({ value: 'attachment', params: { filename } })),
  );
}

/** A file is no multipart, whatever the caller calls it. It is named by `filename`, not by its type. */
function typeOf(given: string): { type: string; params: Record<string, string> } {
  const { value, params } = parseHeaderValue(given, { stripComments: true });
  const type = value.replace(/[\x00-\x1f\x7f]/g, '');
  if (/^multipart\//i.test(type)) return { type: 'application/octet-stream', params: {} };
  const others = Object.entries(params).filter(([name]) => !/^name(\*|$)/i.test(name));
  return { type, params: Object.fromEntries(others) };
}

/** For the readers that know neither Content-Disposition nor RFC 2231: an encoded word, which no standard has here. */
function parameter(value: string): string {
  return /[\s'"\\;:/=(),<>@[\]?]|^-/.test(value) ? JSON.stringify(value) : value;
}

/** Base64 carries any content as it is; but RFC 2046 section 5.2.1 forbids encoding a message within a message. */
function encoded(type: string, content: Buffer): Encoded {
  if (!/^message\//i.test(type) || !isLines(content)) return { encoding: 'base64', bytes: base64(content) };
  const bytes = Buffer.from(toCrlf(content.toString('latin1')), 'latin1');
  return { encoding: bytes.every((byte) => byte < 0x80) ? '7bit' : '8bit', bytes };
}

/** Lines that SMTP can carry: RFC 5321 section 4.5.3.1.6, and no NUL. */
function isLines(content: Buffer): boolean {
  const text = content.toString('latin1');
  return !text.includes('\0') && text.split(/\r\n?|\n/).every((line) => line.length <= 998);
}
