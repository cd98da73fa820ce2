/** The forms that the dashboard of a running server offers to an operator: their fields, by the paths that they go to. */
import { accessTable } from '#front/dashboard/security/route-access.ts';
import type { Browser } from './browser/browser.ts';
import { pathWith } from './hostile-walk.ts';

export async function formsOf(
  browser: Browser,
  values: Record<string, string>,
): Promise<Map<string, string[]>> {
  const found = new Map<string, string[]>();
  for (const { method, path } of accessTable()) {
    // What is no page: a download, or what never ends.
    if (method !== 'GET' || /export|source|preview|records/.test(path)) continue;
    const page = await browser.get(pathWith(path, values, values.id!));
    for (const { action, html } of formsIn(page.html)) {
      const names = [...html.matchAll(/ name="([^"]+)"/g)].map(([, name]) => name!);
      const to = new URL(action || page.path, 'http://x').pathname;
      found.set(to, [...new Set([...(found.get(to) ?? []), ...names.filter((name) => name !== '_csrf')])]);
    }
  }
  return found;
}

function formsIn(html: string): { action: string; html: string }[] {
  return html
    .split('<form')
    .slice(1)
    .map((rest) => rest.split('</form>')[0]!)
    .map((form) => ({ action: /^[^>]* action="([^"]*)"/.exec(form)?.[1] ?? '', html: form }));
}
