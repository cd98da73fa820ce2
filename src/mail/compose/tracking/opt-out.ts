/**
 * Attributes by which a link of a mail opts out of click tracking: ours and those of the services whose APIs are served here,
 * so that a mail made for any of them is tracked as its author wants, whichever way it comes in. They say nothing to readers
 * and are removed.
 */
import type { Tag } from '#mail/compose/html-tags.ts';

/** Whether a value of the attribute opts the link out. */
const attributes: Record<string, (value: string) => boolean> = {
  'data-postern-no-track': () => true,
  // Postmark
  'data-pm-no-track': () => true,
  // SendGrid
  clicktracking: (value) => value === 'off',
  // Mailgun
  'disable-tracking': (value) => value !== 'false',
};

interface Range {
  start: number;
  end: number;
}

export function readOptOut(html: string, tag: Tag): { isOptedOut: boolean; attributes: Range[] } {
  let isOptedOut = false;
  const ranges: Range[] = [];
  for (const [name, optsOut] of Object.entries(attributes)) {
    const value = tag.value(name);
    if (value === undefined) continue;
    isOptedOut ||= optsOut(value.trim().toLowerCase());
    ranges.push(withSpaceBefore(html, tag.range(name)));
  }
  return { isOptedOut, attributes: ranges.sort((a, b) => a.start - b.start) };
}

/** Without the white space before it, what follows would become part of an unquoted value before: a slash, another attribute. */
function withSpaceBefore(html: string, { start, end }: Range): Range {
  if (!/[\t\n\f\r >]/.test(html.charAt(end))) return { start, end };
  let from = start;
  while (/[\t\n\f\r ]/.test(html.charAt(from - 1))) from -= 1;
  return { start: from, end };
}
