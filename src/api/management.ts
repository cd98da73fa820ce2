/**
 * What the endpoints that manage an organization have in common. They need a key with full_access and without a
 * domain_scope, act only within the key's organization, and forbid caches to store responses, which can hold secrets.
 */
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
import type { AttemptWebhook } from '../webhooks/webhook-attempt.ts';
import type { Admission, Slot } from './admission.ts';
import type { Authorize } from './authorize.ts';
import {
  type Content,
  type Endpoint,
  type EndpointErrors,
  type ErrorText,
  jsonExample,
  pathParameter,
  readErrors,
} from './endpoint.ts';
import { toIssues } from './issues.ts';
import { uuidIn } from './query.ts';
import { BodyBudgetExceeded, parseJson, readBody } from './request-body.ts';
import { rule } from './send/schema-rule.ts';
import { createSlotsPerOrganization } from './server-busy.ts';

export interface Management {
  authorize: Authorize;
  db: Db;
  clock: Clock;
  seal: Seal;
  /** The names that DNS records point to. */
  names: Names;
  /** Looks up DNS records. */
  resolve: Resolve;
  /** How long the record of a DKIM key must stay published after the key stops signing. */
  keepKeysMs: number;
  /** Whether webhooks can go to private addresses. */
  allowPrivate: boolean;
  /** Posts to a webhook once. */
  attemptWebhook: AttemptWebhook;
  eventSignal: Pick<EventSignal, 'notify'>;
  /** Bounds the bodies in memory. */
  admission: Admission;
}

export interface ManagementParts {
  management: Management;
}

type Respond = (context: Context, orgId: string, parts: Management) => Promise<object>;

type Declared = Omit<Endpoint<Management>, 'tag' | 'scopes' | 'errors' | 'handler'> & {
  errors?: EndpointErrors;
};

interface Responding {
  /** Resolves to the members of the response beside `success`. */
  respond: Respond;
  /** For calls that take long: how many of them an organization can have under way. */
  maxInFlight?: number;
}

/** An endpoint that reads its body or writes its response itself has a handler. */
type ManagementEndpoint = Declared & (Responding | Pick<Endpoint<Management>, 'handler'>);

export function managementEndpoints(tag: string, list: ManagementEndpoint[]): Endpoint<ManagementParts>[] {
  return list.map((declared) => ({
    ...declared,
    tag,
    scopes: ['full_access'],
    errors: { ...managementErrors, ...declared.errors },
    handler: ({ management }) =>
      'handler' in declared ? declared.handler(management) : responding(management, declared),
  }));
}

const managementErrors: EndpointErrors = {
  UNAUTHORIZED: {},
  FORBIDDEN: {
    when: 'The key lacks `full_access`, or a `domain_scope` restricts it.',
    message: 'The API key lacks the scope full_access.',
  },
  RATE_LIMIT_EXCEEDED: {},
  SEND_FAILED: {
    ...readErrors.SEND_FAILED,
    when: 'The service failed. Try again.',
  },
};

function responding(parts: Management, { respond, maxInFlight }: Responding): Middleware {
  const { authorize, admission } = parts;
  const slots = maxInFlight === undefined ? undefined : createSlotsPerOrganization(maxInFlight);
  return async (context) => {
    let release: (() => void) | undefined;
    try {
      const orgId = await authorizeManager(context, authorize, async (id) => {
        release = slots?.take(context, id);
      });
      context.state.acquireSlot = () => admission.acquire(orgId, 0);
      context.body = { success: true, ...(await respond(context, orgId, parts)) };
    } finally {
      release?.();
    }
  };
}

/** Resolves to the organization that the key manages. `admit` can refuse (429) before the call is counted. */
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

const maxBytes = 64 * 1024;

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

/** The slot is held only while the body is read, because the work after that can take long. */
async function readWithSlot({ req, state }: Context): Promise<Buffer> {
  const slot: Slot | null = await state.acquireSlot();
  if (!slot) throw new BodyBudgetExceeded();
  try {
    return await readBody(req, slot, { type: 'application/json', largest: maxBytes });
  } finally {
    slot.release();
  }
}

export function idIn(context: Context): string {
  const id = uuidIn(context.params.id);
  if (id === null) throw new Refusal('BAD_REQUEST', 'The id in the path is not a UUID.');
  return id;
}

/** Callers look up only what belongs to the key's organization, so another organization's resource is NOT_FOUND. */
export function requireFound<Found>(found: Found | null, what: string): Found {
  if (found !== null) return found;
  throw new Refusal('NOT_FOUND', `There is no such ${what}.`);
}

/** Aborts when the connection closes, because the client went away or the service stops: long work ends then. */
export function goneSignal({ res }: Context): AbortSignal {
  const closed = new AbortController();
  const abort = () => closed.abort(new Refusal('BAD_REQUEST', 'The connection was closed.'));
  if (res.closed) abort();
  else res.once('close', abort);
  return closed.signal;
}

export function oneLine(maxLength: number) {
  return z
    .string()
    .check(
      rule((text) => isOneLine(text, maxLength), `one line of text with at most ${maxLength} characters`),
    );
}

export const moment = z.iso.datetime({ precision: 3 });

/** The response of calls that have nothing to report. */
export const done = z.object({ success: z.literal(true) });

export const doneContent: Content = jsonExample(done, 'Done', { success: true });

export const nextId = z
  .uuid()
  .nullable()
  .meta({ description: 'The cursor of the next page: pass it as `after`. Null on the last page.' });

export const exampleId = '0198c9a4-6f1e-7d52-b3a4-5f0c8b1d9e27';
export const exampleTime = '2026-03-02T08:15:30.120Z';

export const idInPath = pathParameter('id', 'The id of the resource.', exampleId, 'uuid');

export function jsonBody(schema: z.ZodType, summary: string, value: object): Endpoint<never>['body'] {
  return { description: 'At most 64 KiB.', content: jsonExample(schema, summary, value) };
}

/** A member of the body that has the wrong type. */
export function invalidMember(path: string, expected: string, received: string): Partial<ErrorText> {
  const message = `${path}: Invalid input: expected ${expected}, received ${received}`;
  return { issues: [{ code: 'invalid_type', expected, received, path: [path], message }] };
}

export const invalidBody: Partial<ErrorText> = {
  when: 'The body is not JSON or is larger than 64 KiB.',
  message: 'Content-Type must be application/json.',
};

export const invalidId: Partial<ErrorText> = {
  when: 'The id in the path is not a UUID, or the body is not JSON.',
  message: 'The id in the path is not a UUID.',
};

export function notFound(what: string): Partial<ErrorText> {
  return {
    when: `The ${what} does not exist or belongs to another organization.`,
    message: `There is no such ${what}.`,
  };
}
