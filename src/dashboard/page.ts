/**
 * What a page is made of: handlers by route, each a function from a visit to an answer. The guard (security/authorize-page.ts) has let the
 * visit in before a handler sees it, by the table in dashboard/security/route-access.ts; so a handler of `organization` has one to act in, and
 * hands its id to every query.
 */
import type { Context } from 'koa';
import type { Passwords } from '../accounts/passwords.ts';
import type { Role } from '../accounts/roles.ts';
import type { Seal } from '../accounts/seal.ts';
import type { Management } from '../api/management.ts';
import type { Log } from '../base/log.ts';
import type { Config } from '../config.ts';
import type { Membership } from '../db/accounts/memberships.ts';
import type { Session } from '../db/accounts/sessions-table.ts';
import type { User } from '../db/accounts/users.ts';
import type { TrackingLinks } from '../tracking/tracking-links.ts';
import type { LongWorkSlots } from './long-work-slots.ts';
import type { OperatorJobs } from './operator-jobs.ts';
import type { Cookies } from './security/cookies.ts';
import type { KnownBrowsers } from './security/known-browsers.ts';
import type { LoginThrottle } from './security/login-throttle.ts';
import type { Sessions } from './security/sessions.ts';
import type { Sending } from './sending.ts';

/** Neighbours: what pages act on. The management API's own functions are given the same. */
export interface PageParts extends Omit<Management, 'authorize' | 'admission'> {
  config: Config;
  seal: Seal;
  passwords: Passwords;
  sessions: Sessions;
  loginThrottle: LoginThrottle;
  knownBrowsers: KnownBrowsers;
  cookies: Cookies;
  sending: Sending;
  /** To know our own links again. */
  links: Pick<TrackingLinks, 'read'>;
  longWorkSlots: LongWorkSlots;
  operatorJobs: OperatorJobs;
  /** Who did what to the service. */
  log: Pick<Log, 'info'>;
  baseUrl(): string;
  onError(what: string, error: unknown): void;
}

export interface Visit {
  context: Context;
  /** Of a POST; empty otherwise. */
  form: URLSearchParams;
  query: URLSearchParams;
  now: number;
  /** Whose browser it is: the token in its forms is made for this. */
  visitor: string;
  user: User | null;
  session: Session | null;
}

export interface UserVisit extends Visit {
  user: User;
  session: Session;
}

export interface OrgVisit extends UserVisit {
  org: Membership;
  /** `/dashboard/o/ORGID`: where the organization's pages are. */
  base: string;
  may(role: Role): boolean;
}

export type Handler<V extends Visit> = (visit: V, parts: PageParts) => PageAnswer | Promise<PageAnswer>;

/** By route, such as `GET /dashboard/o/:org/keys`. Each has its entry in dashboard/security/route-access.ts, or the service does not start. */
export interface DashboardPage {
  /** For who is not signed in, too. */
  open?: Record<string, Handler<Visit>>;
  /** For whoever is signed in, about themselves. */
  user?: Record<string, Handler<UserVisit>>;
  /** Below `/dashboard/o/:org`. */
  organization?: Record<string, Handler<OrgVisit>>;
  /** About the whole service. */
  operator?: Record<string, Handler<UserVisit>>;
  /** How large its forms may be, in bytes, where they are larger than usual. */
  maxFormBytes?: number;
}

export type PageAnswer = PageView | Redirect | PageBody;

/** A page in the dashboard's frame, or without one a part of a page, for htmx. */
export interface PageView {
  view: string;
  title: string;
  data: object;
  status: number;
  isPart: boolean;
  /** Scripts of assets/ beside the usual ones. */
  scripts: string[];
}

export interface Redirect {
  to: string;
  flash: Flash | null;
}

/** Anything else: a file to save, a frame's content, a stream. */
export interface PageBody {
  body: string | Buffer | NodeJS.ReadableStream;
  type: string;
  headers: Record<string, string>;
}

export interface Flash {
  tone: 'good' | 'bad' | 'note';
  text: string;
}

/** `view`: below pages/, such as `keys/keys`. */
export function show(
  view: string,
  title: string,
  data: object = {},
  { status = 200, scripts = [] }: { status?: number; scripts?: string[] } = {},
): PageView {
  return { view, title, data, status, isPart: false, scripts };
}

export function part(view: string, data: object = {}): PageView {
  return { view, title: '', data, status: 200, isPart: true, scripts: [] };
}

/** After a POST. What is `said` is shown on the next page, once. */
export function redirect(to: string, flash: string | Flash | null = null): Redirect {
  return { to, flash: typeof flash === 'string' ? { tone: 'good', text: flash } : flash };
}

export function sendBody(
  body: PageBody['body'],
  type: string,
  headers: Record<string, string> = {},
): PageBody {
  return { body, type, headers };
}
