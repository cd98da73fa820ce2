/**
 * Views to HTML: eta, which escapes whatever a view writes with `<%= %>`; a view is compiled when it is first shown, and kept.
 * In each view stand `part(name, data)` (one of views/partials, which sees its own data alone), `icon`, `count`, `percent`,
 * `span` and `when`; `it` has the page's data, and what the frame knows: `csrf`, `user`, `org`, `base`, `may`, `now`.
 */
import { Eta } from 'eta';
import type { Assets } from './assets.ts';
import { icon } from './icons.ts';
import type { NavLink } from './navigation.ts';
import { count, exactly, percent, relative, span } from './number-format.ts';
import type { Flash, OrgVisit, PageView, Visit } from './page.ts';

/** What the frame shows around a page. */
export interface Frame {
  visit: Visit | OrgVisit;
  csrf: string;
  flash: Flash | null;
  theme: 'light' | 'dark' | null;
  links: NavLink[];
  serviceLinks: NavLink[];
  organizations: { id: string; name: string }[];
}

export type Render = (shown: PageView, frame: Frame) => string;

/** Before each view's own code. A partial sees no more of the page than it is given. */
const functionHeader = `
const { icon, count, percent, span, exactly } = it.kit;
const when = (time) => it.kit.when(time, it.now);
const part = (name, data) => this.render('/views/partials/' + name, { kit: it.kit, now: it.now, csrf: it.csrf, ...data });
`;

export function createRender(assets: Assets): Render {
  const eta = new Eta({ views: import.meta.dirname, cache: true, autoEscape: true, functionHeader });
  const kit = { icon, count, percent, span, exactly, when, asset: assets.url };
  return (shown, frame) => {
    const { visit, csrf } = frame;
    const org = 'org' in visit ? visit.org : null;
    const common = {
      kit,
      csrf,
      now: visit.now,
      user: visit.user,
      org,
      base: 'base' in visit ? visit.base : '',
      may: 'may' in visit ? visit.may : () => false,
      here: visit.context.path,
    };
    const body = eta.render(`/pages/${shown.view}`, { ...common, ...shown.data });
    if (shown.isPart) return body;
    const { scripts, title } = shown;
    return eta.render('/views/layout', { ...common, ...frame, scripts, title, body });
  };
}

/** HTML, as it stands: the time in words, exactly where one points at it. */
function when(time: number | null, now: number): string {
  if (time === null) return '<span class="quiet">never</span>';
  const at = new Date(time).toISOString();
  return `<time datetime="${at}" title="${exactly(time)}">${relative(time, now)}</time>`;
}
