/** The links of an email's HTML as its page lists them: the target and where it leads to, each once. */

import { legible } from '#front/dashboard/legible.ts';
import { eachTag } from '#mail/compose/html-tags.ts';

export interface ShownLink {
  target: string;
  /** Whether the page may link to it: no other scheme is opened from the dashboard. */
  isWeb: boolean;
}

const names: ReadonlySet<string> = new Set(['a', 'area']);
const maxLinks = 500;
const maxLength = 4000;

/** `more`: how many are not listed. */
export function linksIn(html: string): { links: ShownLink[]; more: number } {
  const targets = new Set<string>();
  eachTag(html, (name) => names.has(name), {
    onStart(tag) {
      const target = names.has(tag.name) ? tag.value('href')?.trim() : undefined;
      if (target) targets.add(target.slice(0, maxLength));
    },
    onEnd() {},
  });
  const links = [...targets].slice(0, maxLinks).map((target) => ({
    target: legible(target),
    isWeb: /^https?:\/\//i.test(target) && URL.canParse(target),
  }));
  return { links, more: targets.size - links.length };
}
