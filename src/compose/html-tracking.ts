/**
 * Tracking in the HTML of a mail: adds a pixel before the last `</body>` (or at the end), and replaces the http and https
 * links of <a> and <area>. Every other character stays as it was. Pure; the caller provides the links.
 *
 * At most `maxLinks` links of a mail are tracked; later ones stay unchanged. Other schemes, anchors and relative links,
 * links with the attribute `data-postern-no-track`, and links in comments (Outlook's conditional ones too) are never
 * tracked.
 */
import { eachTag } from './html-tags.ts';

/** The pixel and the links of one recipient. */
export interface Tracker {
  pixel(): string;
  /** The tracking link that leads to `target`. */
  link(target: string): string;
}

export interface MessageTracking {
  opens: boolean;
  clicks: boolean;
  /** One for each recipient, in their order. */
  trackers: Tracker[];
}

/** Each link is made for each recipient. A mail that people read has a tenth of this number. */
const maxLinks = 1000;

/** The number of links of a mail that may still be tracked, over all its parts. */
export interface LinkAllowance {
  linksLeft: number;
  /** The mail has more links. */
  isExceeded: boolean;
}

export const newAllowance = (): LinkAllowance => ({ linksLeft: maxLinks, isExceeded: false });

/** The number of tracked links if the mail has more; null if all are tracked. */
export const linkLimitIfExceeded = ({ isExceeded }: LinkAllowance) => (isExceeded ? maxLinks : null);

const optOut = 'data-postern-no-track';

/** With the target in base64, the tracking link still fits the first line of a request (8 KiB in nginx). */
const maxTargetLength = 5000;

interface Replacement {
  start: number;
  end: number;
  /** Replaces the text from `start` to `end`. */
  text(tracker: Tracker): string;
}

/** Reads the HTML once, for any number of recipients. Null if nothing is tracked: then the mail is the same for all. */
export function prepareTracking(
  html: string,
  { opens, clicks }: { opens: boolean; clicks: boolean },
  allowance = newAllowance(),
  mayTrack: (target: string) => boolean = () => true,
): ((tracker: Tracker) => string) | null {
  if (!opens && !clicks) return null;
  const links: Replacement[] = [];
  const watchedTags = new Set(clicks && !allowance.isExceeded ? ['a', 'area', 'body'] : ['body']);
  let bodyEnd = html.length;
  eachTag(html, watchedTags, {
    onStart(tag) {
      if (!watchedTags.has(tag.name) || tag.name === 'body') return;
      const target = targetOf(tag.value('href'));
      if (target === null || !mayTrack(target) || tag.value(optOut) !== undefined) return;
      if (allowance.linksLeft === 0) {
        allowance.isExceeded = true;
        watchedTags.delete('a');
        watchedTags.delete('area');
        return;
      }
      allowance.linksLeft -= 1;
      const { start, end } = tag.range('href');
      links.push({ start, end, text: (tracker) => withValue(html.slice(start, end), tracker.link(target)) });
    },
    onEnd(name, at) {
      if (name === 'body') bodyEnd = at;
    },
  });
  const pixel = { start: bodyEnd, end: bodyEnd, text: pixelOf };
  const replacements = opens ? [...links, pixel].sort((a, b) => a.start - b.start) : links;
  return replacements.length === 0 ? null : (tracker) => splice(html, replacements, tracker);
}

/** The target of an href as a browser reads it (without outer white space and line ends); null if it is not tracked. */
function targetOf(href: string | undefined): string | null {
  const target = href?.trim().replace(/[\t\r\n]/g, '') ?? '';
  const isTracked =
    /^https?:\/\//i.test(target) && Buffer.byteLength(target) <= maxTargetLength && URL.canParse(target);
  return isTracked ? target : null;
}

/** The attribute as it was written, with another value, which is always quoted. */
function withValue(written: string, value: string): string {
  const [, before, quote] = /^([^=]*=\s*)(["']?)/.exec(written)!;
  return `${before}${quote || '"'}${escaped(value)}${quote || '"'}`;
}

function pixelOf(tracker: Tracker): string {
  return `<img src="${escaped(tracker.pixel())}" width="1" height="1" alt="" style="width:1px;height:1px;border:0" />`;
}

function escaped(value: string): string {
  return value
    .replaceAll('&', '&amp;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;')
    .replaceAll('<', '&lt;');
}

function splice(html: string, replacements: Replacement[], tracker: Tracker): string {
  const parts: string[] = [];
  let done = 0;
  for (const { start, end, text } of replacements) {
    parts.push(html.slice(done, start), text(tracker));
    done = end;
  }
  return [...parts, html.slice(done)].join('');
}
