/** The content that the page of an email shows of its stored message, in the view that is open. */
import type { TrackingLinks } from '#mail/record/tracking/tracking-links.ts';
import { untracked } from '#mail/record/tracking/untracked.ts';
import { type EmailContent, readContent, readHtml, sourceOf } from './email-content.ts';
import { linksIn } from './links.ts';

const views = ['html', 'text', 'source', 'header', 'links'] as const;

export type ShownEmail = ReturnType<typeof shownEmail>;

/** `wanted`: the view; another one if the message has none of that kind. */
export function shownEmail(raw: Buffer, wanted: string | null, links: Pick<TrackingLinks, 'read'>) {
  const content = readContent(raw);
  const available = views.filter((view) => isAvailable(view, content));
  const view = available.find((each) => each === wanted) ?? available[0]!;
  // As the sender wrote them: following one from here counts as no click.
  const html = view === 'links' ? readHtml(raw, (text) => untracked(text, links)) : null;
  return {
    ...(content ?? unread),
    views: available,
    view,
    source: view === 'source' ? sourceOf(raw) : null,
    ...(html !== null && linksIn(html)),
    size: raw.length,
  };
}

/** A message that cannot be read. */
export function shownSource(raw: Buffer): ShownEmail {
  return { ...unread, views: ['source'], view: 'source', source: sourceOf(raw), size: raw.length };
}

const unread = { text: null, fields: [], attachments: [] };

function isAvailable(view: (typeof views)[number], content: EmailContent | null): boolean {
  if (view === 'html' || view === 'links') return content?.hasHtml ?? false;
  if (view === 'text') return (content?.text ?? null) !== null;
  return view === 'source' || content !== null;
}
