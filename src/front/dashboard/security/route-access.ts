/**
 * The access table: one line per route. The server does not start if a route has no line, a line has no route, or an entry
 * does not fit its path. Tests walk the table (`accessTable`).
 *
 *   anyone       everybody, signed in or not
 *   user         every signed-in person, about their own account
 *   viewer, developer, owner   the least role in the organization of the path; others get 404
 *   operator     operators of this server
 */
import { type Role, roles } from '#accounts/people/roles.ts';

export type RouteAccess = 'anyone' | 'user' | Role | 'operator';

export const access: Record<string, RouteAccess> = {
  // Signing in and out
  'GET /dashboard': 'user',
  'GET /dashboard/sign-in': 'anyone',
  'POST /dashboard/sign-in': 'anyone',
  'GET /dashboard/sign-in/:token': 'anyone',
  'POST /dashboard/sign-in/code': 'anyone',
  'GET /dashboard/forgotten': 'anyone',
  'POST /dashboard/forgotten': 'anyone',
  'POST /dashboard/sign-out': 'user',
  'GET /dashboard/set-up/:token': 'anyone',
  'POST /dashboard/set-up/:token': 'anyone',
  'GET /dashboard/welcome/:token': 'anyone',
  'POST /dashboard/welcome/:token': 'anyone',
  'GET /dashboard/join/:token': 'anyone',
  'POST /dashboard/join/:token': 'anyone',
  'POST /dashboard/theme': 'anyone',

  // Your account
  'GET /dashboard/account': 'user',
  'POST /dashboard/account/name': 'user',
  'POST /dashboard/account/password': 'user',
  'GET /dashboard/account/second-factor': 'user',
  'POST /dashboard/account/second-factor': 'user',
  'POST /dashboard/account/second-factor/off': 'user',
  'POST /dashboard/account/sessions/end': 'user',
  'POST /dashboard/account/sessions/end-others': 'user',

  // Organizations
  'GET /dashboard/organizations': 'user',
  'POST /dashboard/organizations': 'operator',
  'GET /dashboard/o/:org': 'viewer',

  // Emails
  'GET /dashboard/o/:org/emails': 'viewer',
  'GET /dashboard/o/:org/inbox': 'viewer',
  'POST /dashboard/o/:org/inbox/delete': 'developer',
  'GET /dashboard/o/:org/emails/export': 'viewer',
  'GET /dashboard/o/:org/emails/:id': 'viewer',
  'GET /dashboard/o/:org/emails/:id/preview': 'viewer',
  'GET /dashboard/o/:org/emails/:id/source': 'viewer',
  'GET /dashboard/o/:org/emails/:id/attachments/:at': 'viewer',
  'POST /dashboard/o/:org/emails/:id/resend': 'developer',
  'POST /dashboard/o/:org/emails/:id/cancel': 'developer',
  'POST /dashboard/o/:org/emails/:id/move': 'developer',
  'GET /dashboard/o/:org/send-test': 'developer',
  'POST /dashboard/o/:org/send-test': 'developer',

  // Statistics
  'GET /dashboard/o/:org/statistics': 'viewer',
  'GET /dashboard/o/:org/statistics/export': 'viewer',
  'GET /dashboard/o/:org/sender-rules': 'viewer',

  // Usage
  'GET /dashboard/o/:org/usage': 'viewer',
  'POST /dashboard/o/:org/usage/grant': 'operator',
  'POST /dashboard/o/:org/usage/quota': 'operator',
  'POST /dashboard/o/:org/usage/limits': 'operator',
  'POST /dashboard/o/:org/usage/pool': 'operator',

  // Domains
  'GET /dashboard/o/:org/domains': 'viewer',
  'POST /dashboard/o/:org/domains': 'developer',
  'GET /dashboard/o/:org/domains/:name': 'viewer',
  'GET /dashboard/o/:org/domains/:name/records': 'viewer',
  'POST /dashboard/o/:org/domains/:name/check': 'developer',
  'POST /dashboard/o/:org/domains/:name/rotate': 'developer',
  'POST /dashboard/o/:org/domains/:name/rotate/cancel': 'developer',
  'POST /dashboard/o/:org/domains/:name/ed25519': 'developer',
  'POST /dashboard/o/:org/domains/:name/ed25519/end': 'developer',
  'POST /dashboard/o/:org/domains/:name/tracking': 'developer',
  'POST /dashboard/o/:org/domains/:name/tls': 'developer',
  'POST /dashboard/o/:org/domains/:name/receive': 'developer',
  'POST /dashboard/o/:org/domains/:name/remove': 'developer',

  // Received mail
  'GET /dashboard/o/:org/received': 'viewer',
  'GET /dashboard/o/:org/received/:id': 'viewer',
  'GET /dashboard/o/:org/received/:id/preview': 'viewer',
  'GET /dashboard/o/:org/received/:id/source': 'viewer',
  'GET /dashboard/o/:org/received/:id/attachments/:at': 'viewer',
  'GET /dashboard/o/:org/routes': 'viewer',
  'POST /dashboard/o/:org/routes': 'developer',
  'GET /dashboard/o/:org/routes/:id': 'developer',
  'POST /dashboard/o/:org/routes/:id': 'developer',
  'POST /dashboard/o/:org/routes/:id/remove': 'developer',

  // Streams
  'GET /dashboard/o/:org/streams': 'viewer',
  'POST /dashboard/o/:org/streams': 'developer',
  'GET /dashboard/o/:org/streams/:stream': 'viewer',
  'POST /dashboard/o/:org/streams/:stream': 'developer',
  'POST /dashboard/o/:org/streams/:stream/remove': 'developer',

  // Auto-pauses
  'GET /dashboard/o/:org/pauses': 'viewer',
  'POST /dashboard/o/:org/pauses/:id/release': 'developer',

  // Suppressions
  'GET /dashboard/o/:org/suppressions': 'viewer',
  'POST /dashboard/o/:org/suppressions': 'developer',
  'GET /dashboard/o/:org/suppressions/export': 'viewer',
  'GET /dashboard/o/:org/suppressions/import': 'developer',
  'POST /dashboard/o/:org/suppressions/import': 'developer',
  'GET /dashboard/o/:org/suppressions/:id': 'viewer',
  'POST /dashboard/o/:org/suppressions/:id/remove': 'developer',

  // Webhooks
  'GET /dashboard/o/:org/webhooks': 'viewer',
  'POST /dashboard/o/:org/webhooks': 'developer',
  'GET /dashboard/o/:org/webhooks/:id': 'viewer',
  'GET /dashboard/o/:org/webhooks/:id/events': 'viewer',
  // Its posts are signed.
  'GET /dashboard/o/:org/webhooks/:id/events/:event': 'viewer',
  'POST /dashboard/o/:org/webhooks/:id/events': 'developer',
  'POST /dashboard/o/:org/webhooks/:id/enable': 'developer',
  'POST /dashboard/o/:org/webhooks/:id/disable': 'developer',
  'POST /dashboard/o/:org/webhooks/:id/rotate': 'developer',
  'POST /dashboard/o/:org/webhooks/:id/remove': 'developer',
  'POST /dashboard/o/:org/webhooks/:id/test': 'developer',
  'POST /dashboard/o/:org/webhooks/:id/replay': 'developer',

  // Team
  'GET /dashboard/o/:org/team': 'owner',
  'POST /dashboard/o/:org/team': 'owner',
  'POST /dashboard/o/:org/team/second-factor': 'owner',
  'POST /dashboard/o/:org/team/:id/role': 'owner',
  'POST /dashboard/o/:org/team/:id/link': 'owner',
  'POST /dashboard/o/:org/team/:id/remove': 'owner',
  'POST /dashboard/o/:org/team/invitations/:id/remove': 'owner',

  // API keys
  'GET /dashboard/o/:org/keys': 'viewer',
  'POST /dashboard/o/:org/keys': 'developer',
  'POST /dashboard/o/:org/keys/:id/revoke': 'developer',
  'POST /dashboard/o/:org/keys/:id/rotate': 'developer',
  'GET /dashboard/o/:org/keys/:id/first-email': 'viewer',

  // This server
  'GET /dashboard/queue': 'operator',
  'GET /dashboard/queue/to/:destination': 'operator',
  'GET /dashboard/queue/action': 'operator',
  'POST /dashboard/queue/actions': 'operator',
  'POST /dashboard/queue/suspend': 'operator',
  'POST /dashboard/queue/resume': 'operator',
  'GET /dashboard/doctor': 'operator',
  'POST /dashboard/doctor': 'operator',
};

export interface AccessEntry {
  method: string;
  path: string;
  access: RouteAccess;
  scope: 'open' | 'user' | 'organization' | 'operator';
}

export function accessTable(): AccessEntry[] {
  return Object.entries(access).map(([route, min]) => {
    const [method, path] = route.split(' ') as [string, string];
    return { method, path, access: min, scope: scopeOf(path, min) };
  });
}

function scopeOf(path: string, min: RouteAccess): AccessEntry['scope'] {
  if (/^\/dashboard\/o\/:org(\/|$)/.test(path)) return 'organization';
  if (min === 'anyone') return 'open';
  return min === 'operator' ? 'operator' : 'user';
}

/** Differences between the table and the routes; empty if they match. */
export function accessProblems(routes: { route: string; scope: AccessEntry['scope'] }[]): string[] {
  const table = accessTable();
  const entries = new Map(table.map((entry) => [`${entry.method} ${entry.path}`, entry]));
  const named = new Set(routes.map(({ route }) => route));
  const isMembers = (min: RouteAccess) => (roles as readonly string[]).includes(min);
  return [
    ...routes.flatMap(({ route, scope }) => {
      const entry = entries.get(route);
      if (!entry) return [`${route} has no entry`];
      return entry.scope === scope ? [] : [`${route} is ${entry.scope} here and ${scope} on its page`];
    }),
    ...[...entries.keys()].filter((route) => !named.has(route)).map((route) => `${route} has no route`),
    ...table
      .filter(({ scope, access: min }) =>
        scope === 'organization' ? !isMembers(min) && min !== 'operator' : isMembers(min),
      )
      .map(({ method, path, access: min }) => `${method} ${path} cannot be for ${min}`),
  ];
}
