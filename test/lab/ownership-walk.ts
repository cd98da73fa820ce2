/**
 * A walk over every route of a running server, by everybody, with the things of others: another organization's, the server's own,
 * and live ones under a test key. The routes come from the tables that the server itself is made of (hostile-walk.ts). A path
 * with a parameter that is not known here ends the walk: say what it names.
 */
import type { Db } from '#platform/database/engine/open.ts';
import { routesOfServer, type WalkedRoute } from './hostile-walk.ts';
import { hasTurn } from './turns.ts';

/** What a path can name. */
interface Named {
  org: string;
  email: string;
  webhook: string;
  route: string;
  received: string;
  key: string;
  domain: string;
  address: string;
  suppression: string;
  pause: string;
  stream: string;
  /** The number of the stream. */
  group: string;
  user: string;
  invitation: string;
  event: string;
  /** The position of a bounce. */
  bounce: string;
}

export interface Things {
  name: string;
  named: Partial<Named>;
  /** Texts that only its owner may be shown, or for those who may see that it exists: `secrets`. */
  marks: string[];
  secrets: string[];
  /** Its rows, which nobody else changes. */
  rows(): Promise<unknown>;
}

export interface Visitor {
  name: string;
  /** An API key, or the session of a browser; null: nobody. */
  key?: string | null;
  session?: { cookie: string; csrf: string } | null;
  /** The organization of its own paths. */
  orgId: string;
  /** What is not its own. */
  foreign: Things[];
  /** Operators are told that the server's mail is there. */
  isOperator?: boolean;
}

export interface OwnershipTally {
  routes: number;
  requests: number;
  faults: string[];
}

/** By the segment before it. */
const kinds: Record<string, keyof Named> = {
  email: 'email',
  emails: 'email',
  outbound: 'email',
  messages: 'email',
  webhooks: 'webhook',
  routes: 'route',
  received: 'received',
  receiving: 'received',
  inbound: 'received',
  keys: 'key',
  'api-keys': 'key',
  domains: 'domain',
  bounces: 'bounce',
  suppressions: 'suppression',
  pauses: 'pause',
  team: 'user',
  invitations: 'invitation',
  events: 'event',
};

const byName: Record<string, keyof Named> = {
  org: 'org',
  domain: 'domain',
  name: 'domain',
  address: 'address',
  stream: 'stream',
  group: 'group',
  email: 'address',
  event: 'event',
};

/** Parameters that name nobody's thing. */
const plain: Record<string, string> = {
  destination: 'there.invalid',
  token: 'x',
  at: '1',
  file: '1',
  position: '0',
  part: 'text',
  attachment: '0',
  path: 'x',
  hash: 'x',
};

function kindOf({ method, path }: WalkedRoute, before: string, name: string): keyof Named | null {
  const kind = byName[name] ?? (name === 'id' ? kinds[before] : undefined);
  if (kind) return kind;
  if (name in plain) return null;
  throw new Error(
    `${method} ${path}: nobody knows whose :${name} after "${before}" is; say what it names in test/lab/ownership-walk.ts`,
  );
}

/** The path with the things; null if it names none of them. */
function pathTo(
  route: WalkedRoute,
  named: Partial<Named>,
  orgId: string,
): { path: string; names: boolean } | null {
  let names = false;
  let isMissing = false;
  const path = route.path
    .replace(/\{\/:\w+\}/g, '')
    .replace(/([^/]*)\/(?::(\w+)|\{(\w+)\})/g, (_, before: string, one?: string, other?: string) => {
      const name = (one ?? other)!;
      const kind = kindOf(route, before, name);
      if (kind === null) return `${before}/${plain[name]}`;
      if (kind === 'org') return `${before}/${orgId}`;
      names = true;
      const value = named[kind];
      if (value === undefined) isMissing = true;
      return `${before}/${encodeURIComponent(value ?? 'x')}`;
    });
  return isMissing ? null : { path, names };
}

/** They end the session, or start a job that outlasts the walk; test/front/dashboard/idor.test.ts asks for them. */
const notWalked = /sign-out|sessions\/end|^\/dashboard\/doctor$/;

/** Of some fifteen visitors each route meets three or four. */
const turns = 4;

/** A list of addresses is asked for one that is on another list: that it is not on this one is no refusal. */
const answersAnyAddress = /suppressions?\/|bounces|unsubscribes|complaints/;

export async function walkOwnership(
  { url }: { url: string },
  visitors: Visitor[],
  log: (what: string) => void = () => {},
): Promise<OwnershipTally> {
  const routes = routesOfServer().filter(({ path, method }) => method === 'GET' || !notWalked.test(path));
  const tally: OwnershipTally = { routes: routes.length, requests: 0, faults: [] };
  for (const [at, visitor] of visitors.entries()) {
    const before = await Promise.all(visitor.foreign.map((things) => things.rows()));
    const { requests } = tally;
    for (const [index, route] of routes.entries())
      if (isFor(route, visitor) && hasTurn(at + index, turns)) await walkRoute(url, route, visitor, tally);
    for (const [index, things] of visitor.foreign.entries()) {
      const [was, is] = [before[index], await things.rows()].map((rows) => JSON.stringify(rows));
      if (was !== is) tally.faults.push(`${visitor.name} has changed ${things.name}: ${was} is ${is}`);
    }
    log(`${visitor.name}: ${tally.requests - requests} requests`);
  }
  return tally;
}

function isFor({ service }: WalkedRoute, { key, session }: Visitor): boolean {
  if (service === 'dashboard') return session !== undefined;
  return key !== undefined;
}

async function walkRoute(url: string, route: WalkedRoute, visitor: Visitor, tally: OwnershipTally) {
  const isOfOrg = /:org\b/.test(route.path);
  const asked = new Set<string>();
  for (const things of visitor.foreign) {
    // By its owner's path, and by the visitor's own.
    for (const orgId of isOfOrg ? [things.named.org!, visitor.orgId] : [visitor.orgId]) {
      const target = pathTo(route, things.named, orgId);
      if (target === null) continue;
      const isNamed = target.names || (isOfOrg && orgId !== visitor.orgId);
      // A list is the same, whatever it must not have.
      if (asked.has(target.path)) continue;
      asked.add(target.path);
      await askOnce({ url, route, visitor, tally }, target.path, isNamed ? things : null);
    }
  }
}

interface Walk {
  url: string;
  route: WalkedRoute;
  visitor: Visitor;
  tally: OwnershipTally;
}

async function askOnce({ url, route, visitor, tally }: Walk, path: string, named: Things | null) {
  const { method, service } = route;
  const body = bodyOf(route, visitor);
  const response = await fetch(url + path, {
    method,
    redirect: 'manual',
    headers: { ...headersFor(service, visitor), ...(body && { 'content-type': body.type }) },
    ...(body && { body: body.text }),
  });
  const text = await response.text();
  tally.requests += 1;
  const { status } = response;
  const what = `${visitor.name}: ${method} ${path}`;
  if (status >= 500) tally.faults.push(`${what}: ${status} ${text.slice(0, 200)}`);
  // To a test key, too, the domain is its organization's: it has the events of test mail from there.
  const isOwnDomain = service === 'mailgun' && named?.named.org === visitor.orgId;
  if (named && status < 300 && !isOwnDomain && !answersAnyAddress.test(path))
    tally.faults.push(`${what} (${named.name}): ${status} ${text.slice(0, 200)}`);
  const said = decodeURIComponent(path) + (body?.text ?? '');
  for (const things of visitor.foreign) {
    for (const mark of visitor.isOperator ? things.secrets : things.marks)
      if (text.includes(mark) && !said.includes(mark))
        tally.faults.push(`${what} shows ${mark} of ${things.name}`);
  }
}

function bodyOf(route: WalkedRoute, { session }: Visitor): { type: string; text: string } | null {
  const urlencoded = 'application/x-www-form-urlencoded';
  if (route.method === 'GET') return null;
  if (route.service === 'dashboard')
    return { type: urlencoded, text: new URLSearchParams({ _csrf: session?.csrf ?? '' }).toString() };
  const kind = route.bodies[0]?.kind;
  if (kind === undefined) return null;
  if (kind === 'csv') return { type: 'text/csv', text: 'address\nwalked@there.invalid\n' };
  if (kind === 'json') return { type: 'application/json', text: JSON.stringify(route.example ?? {}) };
  return { type: urlencoded, text: new URLSearchParams(route.example as Record<string, string>).toString() };
}

function headersFor(service: string, { key, session }: Visitor): Record<string, string> {
  if (service === 'dashboard') return session ? { cookie: session.cookie } : {};
  if (!key) return {};
  if (service === 'postmark') return { 'x-postmark-server-token': key };
  if (service === 'mailgun')
    return { authorization: `Basic ${Buffer.from(`api:${key}`).toString('base64')}` };
  return { authorization: `Bearer ${key}` };
}

/** The rows of an organization that only its owner changes; `live`: without test mail and test keys. */
export async function rowsOf(db: Db, orgId: string, live = false): Promise<object> {
  const without = (row: Record<string, unknown>, ...names: string[]) =>
    Object.fromEntries(Object.entries(row).filter(([name]) => !names.includes(name)));
  const emails = await db('emails')
    .where({ org_id: orgId, ...(live && { is_test: false }) })
    .orderBy('id');
  const ids = emails.map(({ id }) => id);
  const keys = await db('api_keys')
    .where({ org_id: orgId, ...(live && { is_test: false }) })
    .orderBy('id');
  const ofOrg = (table: string, order = 'id') => db(table).where({ org_id: orgId }).orderBy(order);
  return {
    emails,
    deliveries: await db('deliveries').whereIn('email_id', ids).orderBy('id'),
    events: await db('events').whereIn('email_id', ids).orderBy('position').pluck('type'),
    messages: (await db('messages').whereIn('email_id', ids).orderBy('id')).map(({ size }) => size),
    keys: keys.map((row) => without(row, 'used_at')),
    webhooks: await ofOrg('webhooks'),
    routes: await ofOrg('receiving_routes'),
    received: (await ofOrg('received_mails')).map(({ id }) => id),
    suppressions: await ofOrg('suppressions'),
    domains: await ofOrg('domains'),
    members: await ofOrg('memberships', 'user_id'),
    invitations: await ofOrg('invitations', 'email_key'),
  };
}
