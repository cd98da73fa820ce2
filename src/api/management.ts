/**
 * What the routes have in common that manage an organization: they take a key with full_access that no domain restricts,
 * act within the key's organization alone, and their answers, in which secrets may be, are kept nowhere on the way.
 */
import type Router from '@koa/router';
import type { Context, Middleware } from 'koa';
import { z } from 'zod';
import { requireManager } from '../accounts/api-keys.ts';
import type { Names } from '../accounts/domains.ts';
import type { Seal } from '../accounts/seal.ts';
import type { Clock } from '../base/clock.ts';
import type { Db } from '../db/engine/open.ts';
import { Refusal } from '../mail/refusal.ts';
import type { EventSignal } from '../record/event-signal.ts';
import type { Resolve } from '../route/resolver.ts';
import { isOneLine } from '../settings/grammar.ts';
import type { TryWebhook } from '../webhooks/webhook-attempt.ts';
import type { Admission, Slot } from './admission.ts';
import type { Authorize } from './authorize.ts';
import { toIssues } from './issues.ts';
import { BodyBudgetExceeded, parseJson, readBody } from './request-body.ts';
import { rule } from './send/schema-rule.ts';
import type { SlotsPerOrganization } from './server-busy.ts';

export interface Management {
  authorize: Authorize;
  db: Db;
  clock: Clock;
  seal: Seal;
  /** What DNS records name. */
  names: Names;
  /** Looks records up. */
  resolve: Resolve;
  /** How long the record of a DKIM key must stay once it signs no more. */
  keepKeysMs: number;
  /** Whether webhooks may go to private addresses. */
  allowPrivate: boolean;
  /** One try of a webhook. */
  attemptWebhook: TryWebhook;
  eventSignal: Pick<EventSignal, 'ring'>;
  /** For large bodies. */
  admission: Admission;
}

export type AddManagementRoutes = (router: Router, inBounds: Middleware, parts: Management) => void;

type Act = (context: Context, orgId: string) => Promise<object>;

/** The answer is what `act` answers, and that it went well. `places`: of those that take long, so many at once. */
export function management(
  { authorize, admission }: Management,
  act: Act,
  places?: SlotsPerOrganization,
): Middleware {
  return async (context) => {
    let leave: (() => void) | undefined;
    try {
      const orgId = await authorizeManager(context, authorize, async (one) => {
        leave = places?.take(context, one);
      });
      context.state.enterRoom = () => admission.acquire(orgId, 0);
      context.body = { success: true, ...(await act(context, orgId)) };
    } finally {
      leave?.();
    }
  };
}

/** The organization that is managed. `admit` may refuse (429) before the call is counted. */
export async function authorizeManager(
  context: Context,
  authorize: Authorize,
  admit?: (orgId: string) => Promise<void>,
): Promise<string> {
  context.set('Cache-Control', 'no-store');
  const caller = await authorize.enter(context, 'full_access', async ({ orgId }) => admit?.(orgId));
  requireManager(caller);
  return caller.orgId;
}

const largest = 64 * 1024;

export async function readJson<Schema extends z.ZodType>(
  context: Context,
  schema: Schema,
): Promise<z.output<Schema>> {
  const body = await parseJson(await readWithSlot(context));
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  throw new Refusal('VALIDATION_ERROR', 'The request is not valid.', {
    issues: toIssues(parsed.error, body),
  });
}

/** Only while the body is read: what is done then may take long. */
async function readWithSlot({ req, state }: Context): Promise<Buffer> {
  const slot: Slot | null = await state.enterRoom();
  if (!slot) throw new BodyBudgetExceeded();
  try {
    return await readBody(req, slot, { type: 'application/json', largest });
  } finally {
    slot.release();
  }
}

/** A UUID of whatever version and variant: what is well-formed and unknown is not found. */
const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export function idIn(context: Context): string {
  const id: string = context.params.id.toLowerCase();
  if (uuid.test(id)) return id;
  throw new Refusal('BAD_REQUEST', 'The id in the path is not a UUID.');
}

/** Another organization's is not there either. */
export function requireFound<Found>(found: Found | null, what: string): Found {
  if (found !== null) return found;
  throw new Refusal('NOT_FOUND', `There is no such ${what}.`);
}

/** Aborts when the caller has gone, or is sent away because the service stops: what takes long ends then. */
export function goneSignal({ res }: Context): AbortSignal {
  const gone = new AbortController();
  const abort = () => gone.abort(new Refusal('BAD_REQUEST', 'The connection was closed.'));
  if (res.closed) abort();
  else res.once('close', abort);
  return gone.signal;
}

export function oneLine(longest: number) {
  return z
    .string()
    .check(rule((text) => isOneLine(text, longest), `some text of one line, ${longest} characters at most`));
}

export const moment = z.iso.datetime({ precision: 3 });

/** Of what was done and has nothing to tell. */
export const done = z.object({ success: z.literal(true) });

export const nextId = z
  .uuid()
  .nullable()
  .meta({ description: 'Where to go on: give it as `after`. Null: that was all.' });
