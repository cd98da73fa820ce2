/**
 * A page is a set of handlers by route, each a function from a visit to an answer. security/authorize-page.ts has checked the
 * visit against the table in security/route-access.ts before a handler runs. A handler of `organization` gets the organization
 * of the path and must pass its id to every query.
 */
import type { Context } from 'koa';
import type { Passwords } from '#accounts/people/passwords.ts';
import type { Role } from '#accounts/people/roles.ts';
import type { Membership } from '#accounts/rows/memberships.ts';
import type { Session } from '#accounts/rows/sessions-table.ts';
import type { User } from '#accounts/rows/users.ts';
import type { Seal } from '#accounts/seal.ts';
import type { Management } from '#front/api/management.ts';
import type { ShownEmail } from '#front/dashboard/pages/email/shown-email.ts';
import type { LinkMails } from '#front/dashboard/pages/sign-in/link-mails.ts';
import type { Cookies } from '#front/dashboard/security/cookies.ts';
import type { KnownBrowsers } from '#front/dashboard/security/known-browsers.ts';
import type { LoginThrottle } from '#front/dashboard/security/login-throttle.ts';
import type { Sessions } from '#front/dashboard/security/sessions.ts';
import type { FormBody } from '#front/http/body-limits.ts';
import type { Log } from '#platform/base/log.ts';
import type { Config } from '#platform/settings/config.ts';
import type { LongWorkSlots } from './long-work-slots.ts';
import type { OperatorJobs } from './operator-jobs.ts';
import type { Sending } from './sending.ts';

/** The parts that handlers work with; the management API gets the same. */
export interface PageParts extends Omit<Management, 'authorize' | 'admission'> {
  config: Config;
  /** All mail is test mail (`postern dev`). */
  isDevelopment: boolean;
  seal: Seal;
  passwords: Passwords;
  sessions: Sessions;
  loginThrottle: LoginThrottle;
  knownBrowsers: KnownBrowsers;
  cookies: Cookies;
  sending: Sending;
  linkMails: LinkMails;
  reading: MessageReading;
  longWorkSlots: LongWorkSlots;
  operatorJobs: OperatorJobs;
  /** Records what operators did. */
  log: Pick<Log, 'info'>;
  baseUrl(): string;
  onError(what: string, error: unknown): void;
}

/** Reads stored messages on a thread of its own (server/message-reading.ts). Null: the message cannot be read. */
export interface MessageReading {
  /** The content that the page shows in this view. */
  shown(orgId: string, raw: Buffer, view: string | null): Promise<ShownEmail | null>;
  /** Its attached files; the one with the id `wanted` has its content. */
  files(orgId: string, raw: Buffer, wanted: string): Promise<AttachedFile[] | null>;
  /** Its HTML without our tracking; null also if it has none. */
  html(orgId: string, raw: Buffer): Promise<string | null>;
  /** The message as it was before it was signed and tracked. */
  unsent(orgId: string, raw: Buffer): Promise<Buffer | null>;
}

interface AttachedFile {
  id: string;
  filename: string | null;
  type: string;
  content: Buffer | null;
}

export interface PageVisit {
  context: Context;
  /** The form of a POST; empty otherwise. */
  form: URLSearchParams;
  query: URLSearchParams;
  now: number;
  /** Identifies the browser, signed in or not; CSRF tokens are made for it. */
  visitor: string;
  user: User | null;
  session: Session | null;
}

export interface UserVisit extends PageVisit {
  user: User;
  session: Session;
}

export interface OrgVisit extends UserVisit {
  org: Membership;
  /** `/dashboard/o/ORGID`, the root of the organization's pages. */
  base: string;
  may(role: Role): boolean;
}

export type Handler<V extends PageVisit> = (visit: V, parts: PageParts) => PageAnswer | Promise<PageAnswer>;

/**
 * Handlers by route, such as `GET /dashboard/o/:org/keys`. A route without an entry in security/route-access.ts stops the
 * start.
 */
export interface DashboardPage {
  /** Also open to visitors who are not signed in. */
  open?: Record<string, Handler<PageVisit>>;
  /** Open to every signed-in person, about their own account. */
  user?: Record<string, Handler<UserVisit>>;
  /** Below `/dashboard/o/:org`. */
  organization?: Record<string, Handler<OrgVisit>>;
  /** About the whole server. */
  operator?: Record<string, Handler<UserVisit>>;
  /** The limits of its forms, if the default (`smallForm`) is too small. */
  form?: FormBody;
}

export type PageAnswer = PageView | Redirect | PageBody;

/** A page in the dashboard's frame, or a part of a page for htmx. */
export interface PageView {
  view: string;
  title: string;
  data: object;
  status: number;
  isPart: boolean;
  /** Scripts of assets/ in addition to those that every page loads. */
  scripts: string[];
}

export interface Redirect {
  to: string;
  flash: Flash | null;
}

/** A body of another kind: a download, the content of a frame, a stream. */
export interface PageBody {
  body: string | Buffer | NodeJS.ReadableStream;
  type: string;
  headers: Record<string, string>;
}

export interface Flash {
  tone: 'good' | 'bad' | 'note';
  text: string;
}

/** `view`: path below pages/, such as `keys/keys`. A page with `errors` of its form has the status 422. */
export function show(
  view: string,
  title: string,
  data: object = {},
  { status, scripts = [] }: { status?: number; scripts?: string[] } = {},
): PageView {
  const { errors = {} } = data as { errors?: object };
  const defaultStatus = Object.keys(errors).length > 0 ? 422 : 200;
  return { view, title, data, status: status ?? defaultStatus, isPart: false, scripts };
}

export function fragment(view: string, data: object = {}): PageView {
  return { view, title: '', data, status: 200, isPart: true, scripts: [] };
}

/** After a POST. `flash` is shown once, on the next page. */
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
