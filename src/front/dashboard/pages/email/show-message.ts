/** Parts of a message whose content others have chosen, as the browser may show them: its HTML, its source, its files. */

import { type OrgVisit, type PageBody, type PageParts, sendBody } from '#front/dashboard/page.ts';
import { notFound } from '#front/dashboard/page-error.ts';
import { escapeHtml } from '#platform/base/sanitize.ts';

/**
 * The HTML, or the text, for a sandboxed frame of an opaque origin: no scripts, no forms, no navigation, and nothing loaded from
 * other sites unless the reader asks for remote images.
 */
export async function showPreview(
  visit: OrgVisit,
  { reading }: PageParts,
  raw: Buffer | null,
): Promise<PageBody> {
  const html = raw && ((await reading.html(visit.org.id, raw)) ?? (await textAsHtml(visit, reading, raw)));
  if (html === null) throw notFound('preview');
  const showsRemote = visit.query.get('images') === '1';
  const pictures = showsRemote ? 'data: https: http:' : 'data:';
  // The sandbox opens no windows, so links that target one do nothing.
  return sendBody(
    `<!doctype html><meta name="referrer" content="no-referrer"><base target="_blank">${showsRemote ? html : withoutRemote(html)}`,
    'text/html; charset=utf-8',
    {
      'Content-Security-Policy': `${policy}; img-src ${pictures}`,
      'X-Frame-Options': 'SAMEORIGIN',
      'Referrer-Policy': 'no-referrer',
      // A name in a link would be looked up, which tells the sender that the mail is being read.
      'X-DNS-Prefetch-Control': 'off',
    },
  );
}

/** What the policy blocks anyway, so that the browser does not complain of each. */
function withoutRemote(html: string): string {
  return html
    .replace(/\s(src|srcset|background|poster)(?=\s{0,3}=\s{0,3}["']?(?:https?:)?\/\/)/gi, ' data-$1')
    .replace(/\burl(?=\(\s{0,3}["']?(?:https?:)?\/\/)/gi, 'none');
}

async function textAsHtml(
  { org }: OrgVisit,
  reading: PageParts['reading'],
  raw: Buffer,
): Promise<string | null> {
  const shown = await reading.shown(org.id, raw, 'text');
  return shown?.text ? `<pre style="white-space: pre-wrap">${escapeHtml(shown.text.text)}</pre>` : null;
}

const policy = [
  "default-src 'none'",
  "style-src 'unsafe-inline'",
  "form-action 'none'",
  "base-uri 'none'",
  "frame-ancestors 'self'",
  'sandbox',
].join('; ');

/** The exact bytes, as a file. */
export function showSource(raw: Buffer | null, name: string): PageBody {
  if (!raw) throw notFound('message');
  return sendBody(raw, 'message/rfc822', {
    'Content-Disposition': `attachment; filename="${name}.eml"`,
    'Content-Security-Policy': "default-src 'none'; sandbox",
  });
}

/** Types that a browser shows without running anything. All others are saved. */
const shownTypes = /^(image\/(png|jpeg|gif|webp)|application\/pdf|text\/plain)$/;

/** An attached file, opened in the browser if that is safe. */
export async function showAttachment(
  visit: OrgVisit,
  { reading }: PageParts,
  raw: Buffer | null,
): Promise<PageBody> {
  const { at } = visit.context.params as { at: string };
  const files = raw && (await reading.files(visit.org.id, raw, at));
  const file = files?.find(({ id }) => id === at);
  if (!file?.content) throw notFound('attachment');
  const isShown = shownTypes.test(file.type);
  visit.context.attachment(file.filename ?? 'attachment', { type: isShown ? 'inline' : 'attachment' });
  return sendBody(file.content, isShown ? file.type : 'application/octet-stream', {
    'Content-Security-Policy': "default-src 'none'; sandbox",
  });
}
