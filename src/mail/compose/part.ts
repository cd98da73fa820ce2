/** Parts of a message (RFC 2046): a leaf with fields and a body, and multiparts. */
import { randomUUID } from 'node:crypto';
import { type FieldLine, field } from './field.ts';
import type { Encoded } from './transfer-encoding.ts';

export interface MimePart {
  fields: FieldLine[];
  /** In pieces. */
  body: Buffer[];
}

/** A part without children. */
export function leaf(contentType: string, { encoding, bytes }: Encoded, ...more: FieldLine[]): MimePart {
  const fields = [field('Content-Type', contentType), field('Content-Transfer-Encoding', encoding), ...more];
  return { fields, body: [bytes] };
}

export function multipart(
  kind: 'alternative' | 'mixed' | 'related; type="text/html"',
  parts: MimePart[],
): MimePart {
  // Random, so that no caller can write it into a part. "=_" never occurs in quoted-printable (RFC 2045 section 6.7).
  const boundary = `=_${randomUUID()}`;
  const body = parts.flatMap((part, index) => [
    Buffer.from(`${index > 0 ? '\r\n' : ''}--${boundary}\r\n${headText(part.fields)}`),
    ...part.body,
  ]);
  const contentType = field('Content-Type', `multipart/${kind}; boundary="${boundary}"`);
  return { fields: [contentType], body: [...body, Buffer.from(`\r\n--${boundary}--\r\n`)] };
}

/** The header, with the empty line that ends it. */
export function headText(fields: readonly FieldLine[]): string {
  return `${fields.map(({ text }) => text).join('\r\n')}\r\n\r\n`;
}
