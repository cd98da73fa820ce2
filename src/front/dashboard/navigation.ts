/** The links of the sidebar. A link is shown if its page exists and the visitor may open it. */

import { isAtLeast, type Role } from '#accounts/people/roles.ts';
import { access, type RouteAccess } from '#front/dashboard/security/route-access.ts';

interface NavEntry {
  name: string;
  icon: string;
  /** Relative to the organization's pages, or to /dashboard for operators' pages. */
  path: string;
}

export interface NavLink {
  name: string;
  icon: string;
  href: string;
  isHere: boolean;
}

const organizationEntries: NavEntry[] = [
  { name: 'Overview', icon: 'overview', path: '' },
  { name: 'Emails', icon: 'emails', path: '/emails' },
  { name: 'Received mail', icon: 'received', path: '/received' },
  { name: 'Statistics', icon: 'statistics', path: '/statistics' },
  { name: 'Sender rules', icon: 'check', path: '/sender-rules' },
  { name: 'Test inbox', icon: 'inbox', path: '/inbox' },
  { name: 'Domains', icon: 'domains', path: '/domains' },
  { name: 'Routes', icon: 'routes', path: '/routes' },
  { name: 'Streams', icon: 'streams', path: '/streams' },
  { name: 'Suppressions', icon: 'suppressions', path: '/suppressions' },
  { name: 'Webhooks', icon: 'webhooks', path: '/webhooks' },
  { name: 'API keys', icon: 'keys', path: '/keys' },
  { name: 'Usage', icon: 'credits', path: '/usage' },
  { name: 'Team', icon: 'team', path: '/team' },
];

const serverEntries: NavEntry[] = [
  { name: 'Organizations', icon: 'organizations', path: '/organizations' },
  { name: 'Queue', icon: 'queue', path: '/queue' },
  { name: 'Doctor', icon: 'doctor', path: '/doctor' },
];

export function organizationLinks(base: string, here: string, role: Role): NavLink[] {
  return linksTo(organizationEntries, '/dashboard/o/:org', base, here, (min) => isAtLeast(role, min as Role));
}

export function serviceLinks(here: string): NavLink[] {
  return linksTo(serverEntries, '/dashboard', '/dashboard', here, () => true);
}

function linksTo(
  entries: NavEntry[],
  route: string,
  base: string,
  here: string,
  may: (min: RouteAccess) => boolean,
): NavLink[] {
  return entries.flatMap(({ name, icon, path }) => {
    const min = access[`GET ${route}${path}`];
    if (min === undefined || !may(min)) return [];
    const href = base + path;
    return [{ name, icon, href, isHere: here === href || (path !== '' && here.startsWith(`${href}/`)) }];
  });
}
