/**
 * Tracking in the HTML of a mail: a pixel before the last `</body>` (at the end where there is none), and the http
 * and https links of <a> and <area> replaced. Everything else stays as it was, to the character: the HTML is read to
 * find the places, and the replacements are spliced in. Pure; whoever calls says what the links are.
 *
 * Of one mail so many links are tracked and no more; what is after them stays, and is not looked at.
 *
 * Left alone: other schemes, anchors and relative links, links that carry the attribute `data-postern-no-track`, and
 * whatever stands in comments, Outlook's conditional ones included.
 */
import { eachTag } from './html-tags.ts';

/** One recipient's addresses. */
export interface Tracker {
  pixel(): string;
  /** What stands for a link to `target`. */
  link(target: string): string;
}

export interface MessageTracking {
  opens: boolean;
  clicks: boolean;
  /** One for each recipient, in their order. */
  trackers: Tracker[];
}

/** Each is made anew for each recipient. A mail that people read has a tenth of them. */
const maxLinks = 1000;

/** How many more links of a mail are tracked, of all its parts together. */
export interface Allowance {
  linksLeft: number;
  /** There were more. */
  isExceeded: boolean;
}

export const newAllowance = (): Allowance => ({ linksLeft: maxLinks, isExceeded: false });

/** Null where all links are tracked. */
export const limitOf = ({ isExceeded }: Allowance) => (isExceeded ? maxLinks : null);

const optOut = 'data-postern-no-track';

/** As long as a request's first line may be (nginx: 8 KiB), with the target in it as base64. */
const maxTargetLength = 5000;

interface Replacement {
  start: number;
  end: number;
  /** What takes the place of start to end. */
  text(tracker: Tracker): string;
}

/**
 * Reads the HTML once, for any number of recipients. Null where nothing is to be tracked: then the mail is the same
 * for all.
 */
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
      links.push({ start, end, text: (tracker) => attribute(html.slice(start, end), tracker.link(target)) });
    },
    onEnd(name, at) {
      if (name === 'body') bodyEnd = at;
    },
  });
  const pixel = { start: bodyEnd, end: bodyEnd, text: pixelOf };
  const replacements = opens ? [...links, pixel].sort((a, b) => a.start - b.start) : links;
  return replacements.length === 0 ? null : (tracker) => splice(html, replacements, tracker);
}

/** Where an href leads, as a browser reads it (white space around it and line ends within do not count); null: not tracked. */
function targetOf(href: string | undefined): string | null {
  const target = href?.trim().replace(/[\t\r\n]/g, '') ?? '';
  const isTracked =
    /^https?:\/\//i.test(target) && Buffer.byteLength(target) <= maxTargetLength && URL.canParse(target);
  return isTracked ? target : null;
}

/** The attribute as it was written, with another value, in quotes whether it had them or not. */
function attribute(written: string, value: string): string {
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
