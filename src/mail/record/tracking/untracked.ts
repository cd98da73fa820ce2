/**
 * Reverses the tracking of HTML (mail/compose/tracking/html-tracking.ts): replaces each of our links by its target and removes our
 * pixels. Links that are not genuine stay. So a preview or a second send does not count as a visit of the first send.
 */
import { escapeHtml } from '#platform/base/sanitize.ts';
import type { TrackingLinks } from './tracking-links.ts';

const pixel =
  /<img src="[^"<>\s]{1,300}\/t\/o\/([\w-]{1,100})" width="1" height="1" alt="" style="width:1px;height:1px;border:0" \/>/g;
const link = /https?:\/\/[^\s"'<>/]{1,300}(?:\/[^\s"'<>/]{1,100}){0,5}?\/t\/c\/([\w-]{1,8000})/g;

export function untracked(html: string, links: Pick<TrackingLinks, 'read'>): string {
  return html
    .replace(pixel, (whole, token: string) => (links.read('open', token) ? '' : whole))
    .replace(link, (whole, token: string) => {
      const known = links.read('click', token);
      return known ? escapeHtml(known.target) : whole;
    });
}
