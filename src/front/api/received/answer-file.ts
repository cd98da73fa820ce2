/** The headers of an answer that is a file of a stranger, which is never shown in a page of this host. */
import type { Context } from 'koa';

export interface StrangersFile {
  filename: string | null;
  type: string;
  content: Buffer;
}

export function answerFile(context: Context, { filename, type, content }: StrangersFile): Buffer {
  const name = shownName(filename ?? 'attachment');
  context.attachment(name, { fallback: asciiOf(name) });
  context.type = type;
  context.set('Content-Security-Policy', "default-src 'none'; sandbox");
  context.set('Cache-Control', 'private, no-store');
  return content;
}

/** Without what no header can have. */
function shownName(filename: string): string {
  return filename.replace(/\p{Cc}+/gu, '_').toWellFormed();
}

/** The name for clients that do not read `filename*` (RFC 6266 section 4.3, appendix D): `größe.csv` is `gro_e.csv`. */
function asciiOf(name: string): string {
  return name
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .replace(/[^\x20-\x7e]/gu, '_');
}
