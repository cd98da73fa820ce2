/**
 * Adds and changes receiving routes, for API, command line and dashboard. A route names only its organization's domain and
 * webhook. Anything invalid is a Refusal that says what to give instead.
 */
import { findDomain } from '#accounts/rows/domains-table.ts';
import {
  insertRoute,
  isWebhookOf,
  type NewRoute,
  updateRoute,
  withRoutes,
} from '#mail/received/rows/receiving-routes.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { Refusal } from '#platform/values/refusal.ts';
import type { ReceivingRoute } from './received-mail.ts';
import { defaultReply, parseReply, replyForm, replyText } from './reject-reply.ts';
import { defaultPriorities, isSamePattern, maxSteps, parsePattern, stepsOf } from './route-pattern.ts';

const maxRoutes = 200;

export const maxPriority = 1_000_000;
/** Of the largest mail that a route takes, in bytes. */
export const minLargest = 1024;

export interface RouteRequest {
  pattern: string;
  action: ReceivingRoute['action'];
  /** Absent: by the pattern (route-pattern.ts). */
  priority?: number | undefined;
  webhookId?: string | null | undefined;
  reply?: string | null | undefined;
  dmarc?: ReceivingRoute['dmarc'] | undefined;
  largest?: number | null | undefined;
}

export async function addRoute(
  db: Db,
  orgId: string,
  request: RouteRequest,
  now: number,
): Promise<ReceivingRoute> {
  const route = await routeOf(db, orgId, request);
  return withRoutes(db, orgId, async (trx, present) => {
    requireRoom(route, present);
    return insertRoute(trx, route, now);
  });
}

/** Absent members do not change. */
export async function changeRoute(
  db: Db,
  { id, orgId }: Pick<ReceivingRoute, 'id' | 'orgId'>,
  change: Partial<RouteRequest>,
  now: number,
): Promise<ReceivingRoute> {
  return withRoutes(db, orgId, async (trx, present) => {
    const before = present.find((one) => one.id === id);
    if (!before) throw new Refusal('NOT_FOUND', 'There is no such route.');
    const action = change.action ?? before.action;
    const kept = action === before.action ? before : { ...before, webhookId: null, reply: null };
    const request = { ...kept, ...withoutAbsent(change) };
    const route = await routeOf(trx, orgId, request);
    requireRoom(
      route,
      present.filter((one) => one !== before),
    );
    const changed = { ...before, ...route, updatedAt: now };
    await updateRoute(trx, changed);
    return changed;
  });
}

const withoutAbsent = (change: Partial<RouteRequest>) =>
  Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined));

async function routeOf(db: Db, orgId: string, request: RouteRequest): Promise<NewRoute> {
  const { action, webhookId = null, dmarc = 'accept', largest = null } = request;
  const pattern = parsePattern(request.pattern);
  if ('problem' in pattern) throw refused(`pattern: ${pattern.problem}.`);
  const { domain, text, kind } = pattern;
  if (!(await findDomain(db, orgId, domain)))
    throw refused(`pattern: the domain ${domain} is not registered in this organization. Register it first.`);
  if (webhookId !== null && action !== 'webhook')
    throw refused(`webhookId: only a route with the action webhook has one; this one has ${action}.`);
  if (webhookId !== null && !(await isWebhookOf(db, orgId, webhookId)))
    throw refused('webhookId: there is no such webhook in this organization.');
  const priority = request.priority ?? defaultPriorities[kind];
  const reply = replyFor(action, request.reply ?? null);
  return { orgId, domain, priority, pattern: text, action, webhookId, reply, dmarc, largest };
}

function replyFor(action: ReceivingRoute['action'], given: string | null): string | null {
  if (action !== 'reject') {
    if (given === null) return null;
    throw refused(`reply: only a route with the action reject has one; this one has ${action}.`);
  }
  const reply = parseReply(given ?? defaultReply);
  if (reply === null) throw refused(`reply: give ${replyForm}.`);
  return replyText(reply);
}

function requireRoom(route: NewRoute, others: ReceivingRoute[]): void {
  const same = others.find(({ pattern }) => isSamePattern(pattern, route.pattern));
  if (same) throw refused(`pattern: there is a route for ${same.pattern} already (${same.id}).`);
  if (others.length >= maxRoutes)
    throw refused(`This organization has ${maxRoutes} routes; remove one first.`);
  const steps = stepsOf(route.pattern);
  const used = others.reduce((sum, { pattern }) => sum + stepsOf(pattern), 0);
  if (steps > 0 && used + steps > maxSteps)
    throw refused(
      `The expressions of this organization's routes have ${used} of at most ${maxSteps} steps, and this one would add ${steps}. Repeat less in it, or remove another.`,
    );
}

const refused = (why: string) => new Refusal('BAD_REQUEST', why);
