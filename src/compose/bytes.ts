/**
 * A tree of MIME parts to bytes: what the composer's own `build` gives, without a stream for every part and a turn
 * of the event loop between them, which cost more than all the rest. Headers, transfer encodings, folding and
 * boundaries are the composer's.
 *
 * Takes text with CRLF line ends alone, and content in memory: strings and Buffers.
 */
import { once } from 'node:events';
import type MimeNode from 'nodemailer/lib/mime-node';
import * as qp from 'nodemailer/lib/qp';

export async function toBytes(root: MimeNode): Promise<Buffer> {
  const chunks: Buffer[] = [];
  await write(root, chunks);
  const last = chunks.findLast(({ length }) => length > 0)!;
  if (last.at(-1) !== 0x0a) chunks.push(Buffer.from('\r\n'));
  return Buffer.concat(chunks);
}

async function write(node: MimeNode, chunks: Buffer[]): Promise<void> {
  const encoding = node.getTransferEncoding();
  chunks.push(Buffer.from(`${node.buildHeaders()}\r\n\r\n`));
  const content = node.content as string | Buffer | undefined;
  if (content) chunks.push(await encoded(content, encoding));
  if (!node.multipart) return;
  for (const [index, child] of node.childNodes.entries()) {
    chunks.push(Buffer.from(`${index > 0 ? '\r\n' : ''}--${node.boundary}\r\n`));
    await write(child, chunks);
  }
  chunks.push(Buffer.from(`\r\n--${node.boundary}--\r\n`));
}

async function encoded(content: string | Buffer, encoding: string | false): Promise<Buffer> {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  if (encoding === 'quoted-printable') return quotedPrintable(bytes);
  return encoding === 'base64' ? base64(bytes) : bytes;
}

/** The composer encodes slices of this size, so that a large text is not held several times over. */
const slice = 64 * 1024;

async function quotedPrintable(bytes: Buffer): Promise<Buffer> {
  // It also looks at white space at the end by itself; in one go the last line could break elsewhere.
  const isWhole = bytes.length <= slice && bytes.at(-1) === 0x0a;
  if (isWhole) return Buffer.from(qp.wrap(qp.encode(bytes)), 'latin1');
  const encoder = new qp.Encoder();
  const chunks: Buffer[] = [];
  encoder.on('data', (chunk) => chunks.push(chunk));
  encoder.end(bytes);
  await once(encoder, 'end');
  return Buffer.concat(chunks);
}

/** RFC 2045 section 6.8: lines of 76 characters. */
const lineLength = 76;

/** The composer's own makes ten megabytes into strings, five times as slowly. */
function base64(bytes: Buffer): Buffer {
  const text = Buffer.from(bytes.toString('base64'), 'latin1');
  const breaks = Math.max(Math.ceil(text.length / lineLength) - 1, 0);
  const lines = Buffer.allocUnsafe(text.length + 2 * breaks);
  let to = 0;
  for (let from = 0; from < text.length; from += lineLength) {
    if (from > 0) to += lines.write('\r\n', to, 'latin1');
    to += text.copy(lines, to, from, from + lineLength);
  }
  return lines;
}
