/** Bodies of forms: `multipart/form-data` (RFC 7578) and `application/x-www-form-urlencoded`. A value can be any bytes. */
import { randomBytes } from 'node:crypto';
import type { PostBody } from './received-post.ts';

export interface FormField {
  name: string;
  value: string | Buffer;
  /** Set for a file. */
  filename?: string;
  type?: string;
}

export function multipart(fields: readonly FormField[]): PostBody {
  const boundary = `postern-${randomBytes(18).toString('hex')}`;
  const parts = fields.flatMap(({ name, value, filename, type }) => {
    const file = filename === undefined ? '' : `; filename="${quoted(filename)}"`;
    const contentType = type === undefined ? '' : `\r\nContent-Type: ${type}`;
    const head = `--${boundary}\r\nContent-Disposition: form-data; name="${quoted(name)}"${file}${contentType}\r\n\r\n`;
    return [Buffer.from(head), Buffer.from(value as string), Buffer.from('\r\n')];
  });
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    body: Buffer.concat([...parts, Buffer.from(`--${boundary}--\r\n`)]),
  };
}

/** As browsers write names (HTML standard, section 4.10.21.8). */
function quoted(text: string): string {
  return text.replace(/["\r\n]/g, (character) => encodeURIComponent(character));
}

export function urlencoded(fields: readonly FormField[]): PostBody {
  const body = fields.map(
    ({ name, value }) => `${escaped(Buffer.from(name))}=${escaped(Buffer.from(value as string))}`,
  );
  return { contentType: 'application/x-www-form-urlencoded', body: Buffer.from(body.join('&'), 'latin1') };
}

/** Each byte as a form has it. */
const forms = Array.from({ length: 256 }, (_, byte) => {
  const character = String.fromCharCode(byte);
  if (/[\w*.-]/.test(character)) return character;
  return byte === 0x20 ? '+' : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
});

function escaped(bytes: Buffer): string {
  const chunks: string[] = [];
  for (let at = 0; at < bytes.length; at += chunkSize) {
    let chunk = '';
    for (const byte of bytes.subarray(at, at + chunkSize)) chunk += forms[byte];
    chunks.push(chunk);
  }
  return chunks.join('');
}

/** A text that grows by small pieces is a tree of them until it is used. */
const chunkSize = 4096;
