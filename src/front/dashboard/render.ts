/**
 * Renders views to HTML with eta, which escapes everything that a view writes with `<%= %>` and compiles each view once.
 * Views can use `part(name, data)` (a view of views/partials, which sees only its own data), `icon`, `count`, `percent`,
 * `span`, `atMost`, `at`, `timesIn`, `when`, `upcoming` and `lasting`. `it` has the page's data and `csrf`, `user`, `org`,
 * `base`, `may` and `now`. A partial calls functions that write HTML through `it.written`, which returns what they wrote.
 */
import { Eta } from 'eta';
import { capital } from '#platform/base/capital.ts';
import { iso } from '#platform/base/clock.ts';
import { escapeHtml } from '#platform/base/sanitize.ts';
import { atMost, relative, span } from '#platform/base/span.ts';
import type { Assets } from './assets.ts';
import { icon } from './icons.ts';
import type { NavLink } from './navigation.ts';
import { count, dayOf, exactly, percent } from './number-format.ts';
import type { Flash, OrgVisit, PageView, PageVisit } from './page.ts';

/** The data that the layout shows around a page. */
export interface Frame {
  visit: PageVisit | OrgVisit;
  csrf: string;
  flash: Flash | null;
  theme: 'light' | 'dark' | null;
  /** Whose links the sidebar has. */
  current: { id: string; name: string } | null;
  links: NavLink[];
  serviceLinks: NavLink[];
  organizations: { id: string; name: string }[];
}

export type Render = (shown: PageView, frame: Frame) => string;

/** Prepended to each view's code, where eta defines `capture`. A partial gets these and the data passed to it. */
const functionHeader = `
const { icon, count, percent, span, atMost, at, timesIn } = it.kit;
const when = (time) => it.kit.when(time, it.now);
const upcoming = (time) => it.kit.upcoming(time, it.now);
const lasting = (since) => it.kit.lasting(since, it.now);
const part = (name, data) =>
  this.render('/views/partials/' + name, { kit: it.kit, now: it.now, csrf: it.csrf, written: capture, ...data });
`;

export function createRender(assets: Assets): Render {
  const eta = new Eta({ views: import.meta.dirname, cache: true, autoEscape: true, functionHeader });
  const kit = {
    icon,
    count,
    percent,
    span,
    atMost,
    at,
    timesIn,
    when,
    upcoming,
    lasting,
    exactly,
    capital,
    asset: assets.url,
  };
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

/** HTML of how long ago a time was, with the exact time as its tooltip. */
function when(time: number | null, now: number): string {
  if (time === null) return '<span class="quiet">never</span>';
  return timeOf(
    Math.min(time, now),
    'format-style="long" prefix="" tense="past"',
    relative(Math.min(time, now), now),
  );
}

/**
 * The same of a time that may lie ahead. The element keeps it right while the page is open, and has the reader's zone in its
 * tooltip; without scripts both are the server's.
 */
function upcoming(time: number | null, now: number): string {
  if (time === null) return when(null, now);
  return timeOf(time, 'format-style="long" prefix=""', relative(time, now));
}

/** HTML of how long something has lasted, such as `6 hours`, with its begin as the tooltip. */
function lasting(since: number, now: number): string {
  const ms = Math.max(now - since, 1000);
  return `<time datetime="${iso(since)}" title="${exactly(since)}">${span(ms)}</time>`;
}

/** The attributes of the element, and the text without scripts. */
const forms = {
  exact: {
    format:
      'no-title weekday="" day="numeric" month="short" year="numeric" hour="2-digit" minute="2-digit" second="2-digit" time-zone-name="short"',
    text: exactly,
  },
  day: { format: 'weekday="" day="numeric" month="short" year=""', text: dayOf },
  hour: {
    format: 'weekday="" day="" month="" year="" hour="2-digit" minute="2-digit"',
    text: (time: number) => exactly(time).slice(11, 16),
  },
};

/** HTML of an exact time, in the reader's zone with UTC as the tooltip; or of its day or hour only. */
function at(time: number, form: keyof typeof forms = 'exact'): string {
  const { format, text } = forms[form];
  return timeOf(time, `lang="en-GB" format="datetime" ${format}`, text(time));
}

function timeOf(time: number, format: string, text: string): string {
  const element = `<relative-time datetime="${iso(time)}" ${format}>${text}</relative-time>`;
  return `<time datetime="${iso(time)}" title="${exactly(time)}">${element}</time>`;
}

/** HTML of a text, in which each exact time is one. Some of it may be a stranger's, who writes dates that are none. */
function timesIn(text: string): string {
  // `>` too, as the templates escape it.
  const escaped = escapeHtml(text).replaceAll('>', '&gt;');
  return escaped.replace(/\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\b/g, (written) => {
    const time = Date.parse(`${written.slice(0, 19).replace(' ', 'T')}Z`);
    return Number.isNaN(time) ? written : at(time);
  });
}
