/**
 * Tracking in the HTML of a mail: adds a pixel (pixel-place.ts), and replaces the http and https links of <a> and <area>.
 * Every other character stays as it was, except that the attributes by which links opt out (opt-out.ts) are removed.
 * Pure; the caller provides the links.
 *
 * At most `maxLinks` links of a mail are tracked; later ones stay unchanged. Other schemes, anchors and relative links,
 * links that opt out, and links in comments (Outlook's conditional ones too) are never tracked.
 */

import { eachTag, type Tag, withValue } from '#mail/compose/html-tags.ts';
import { escapeHtml } from '#platform/base/sanitize.ts';
import { readOptOut } from './opt-out.ts';
import { PixelPlace } from './pixel-place.ts';

/** The pixel and the links of one recipient. */
export interface Tracker {
  pixel(): string;
  /** The tracking link that leads to `target`. */
  link(target: string): string;
  /** Where the recipient unsubscribes: the value of List-Unsubscribe; null or absent: nowhere. */
  unsubscribe?: string | null;
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

/** With the target in base64, the tracking link still fits the first line of a request (8 KiB in nginx). */
const maxTargetLength = 5000;

interface Edit {
  start: number;
  end: number;
  /** Replaces the text from `start` to `end`; without it, the text is removed. */
  text?(tracker: Tracker): string;
}

const linkTags = ['a', 'area'];

/** Reads the HTML once, for any number of recipients. Null if nothing is tracked: then the mail is the same for all. */
export function prepareTracking(
  html: string,
  { opens, clicks }: { opens: boolean; clicks: boolean },
  allowance = newAllowance(),
  mayTrack: (target: string) => boolean = () => true,
): ((tracker: Tracker) => string) | null {
  if (!opens && !clicks) return null;
  const edits: Edit[] = [];
  const place = new PixelPlace();

  function editLink(tag: Tag): void {
    const { isOptedOut, attributes } = readOptOut(html, tag);
    edits.push(...attributes);
    const target = isOptedOut ? null : targetOf(tag.value('href'));
    if (target === null || !mayTrack(target)) return;
    if (allowance.linksLeft === 0) {
      allowance.isExceeded = true;
      return;
    }
    allowance.linksLeft -= 1;
    const { start, end } = tag.range('href');
    edits.push({ start, end, text: (tracker) => withValue(html.slice(start, end), tracker.link(target)) });
  }

  const names = new Set([...(clicks ? linkTags : []), ...(opens ? PixelPlace.tags : [])]);
  const completeTo = eachTag(html, (name) => names.has(name), {
    onStart(tag) {
      if (!linkTags.includes(tag.name)) place.onStart(tag);
      else if (clicks) editLink(tag);
    },
    onEnd: (name, at) => place.onEnd(name, at),
  });
  if (opens) {
    const at = place.in(completeTo);
    edits.push({ start: at, end: at, text: pixelOf });
  }
  return edits.length === 0
    ? null
    : edited(
        html,
        edits.sort((a, b) => a.start - b.start),
      );
}

/** The target of an href as a browser reads it (without outer white space and line ends); null if it is not tracked. */
function targetOf(href: string | undefined): string | null {
  const target = href?.trim().replace(/[\t\r\n]/g, '') ?? '';
  const isTracked =
    /^https?:\/\//i.test(target) && Buffer.byteLength(target) <= maxTargetLength && URL.canParse(target);
  return isTracked ? target : null;
}

function pixelOf(tracker: Tracker): string {
  return `<img src="${escapeHtml(tracker.pixel())}" width="1" height="1" alt="" style="width:1px;height:1px;border:0" />`;
}

/** The pieces that are the same for all recipients are joined once. */
function edited(html: string, edits: Edit[]): (tracker: Tracker) => string {
  const pieces: { before: string; text(tracker: Tracker): string }[] = [];
  let fixed: string[] = [];
  let done = 0;
  for (const { start, end, text } of edits) {
    fixed.push(html.slice(done, start));
    done = end;
    if (!text) continue;
    pieces.push({ before: fixed.join(''), text });
    fixed = [];
  }
  const rest = [...fixed, html.slice(done)].join('');
  return (tracker) => pieces.map(({ before, text }) => before + text(tracker)).join('') + rest;
}
