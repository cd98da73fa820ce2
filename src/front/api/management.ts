/**
 * The common part of the endpoints of an organization's resources. They act only within the key's organization. Those that
 * manage it need a key with full_access and without a domain_scope, and forbid caches to store responses, which can hold secrets.
 */

import type { Context, Middleware } from 'koa';
import { z } from 'zod';
import { type Caller, requireManager } from '#accounts/api-keys.ts';
import type { Names } from '#accounts/domains.ts';
import type { Seal } from '#accounts/seal.ts';
import type { Parameter } from '#front/api/openapi/openapi-types.ts';
import { withoutNulls } from '#front/http/absent-members.ts';
import type { Admission } from '#front/http/admission.ts';
import type { Authorize } from '#front/http/authorize.ts';
import { type NoBody, noBody, smallJson } from '#front/http/body-limits.ts';
import { checked } from '#front/http/issues.ts';
import { readQuery, uuidIn } from '#front/http/query.ts';
import { BodyBudgetExceeded, parseJson, readBody } from '#front/http/request-body.ts';
import { rule } from '#front/http/schema-rule.ts';
import { CallSlots } from '#front/http/server-busy.ts';
import type { ReceivedReader } from '#mail/received/reading-tasks.ts';
import type { EventSignal } from '#mail/record/event-signal.ts';
import type { AttemptWebhook } from '#mail/webhooks/webhook-attempt.ts';
import type { Clock } from '#platform/base/clock.ts';
import type { FileLinks } from '#platform/base/file-links.ts';
import type { ByteHold } from '#platform/base/limits/byte-budget.ts';
import type { Resolve } from '#platform/base/net/resolve.ts';
import { isOneLine } from '#platform/base/sanitize.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { Refusal } from '#platform/values/refusal.ts';
import {
  type Content,
  type Endpoint,
  type EndpointErrors,
  exampleId,
  invalidQuery,
  jsonResponse,
  pathParameter,
  readErrors,
} from './endpoint.ts';

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
  /** Whether webhooks may post to private addresses. */
  allowPrivate: boolean;
  /** Posts to a webhook once. */
  attemptWebhook: AttemptWebhook;
  eventSignal: Pick<EventSignal, 'notify'>;
  receivedReading: Pick<ReceivedReader, 'content' | 'file'>;
  /** Links to the parts of received mail. */
  receivedLinks: FileLinks;
  /** Bounds the bodies in memory. */
  admission: Admission;
}

/** The keys that may call: those that manage the organization, those and test keys, or those with a scope. */
type Access = 'manager' | 'key manager' | 'email:read' | 'email:send' | 'received:read';

const manages = (access: Access): access is 'manager' | 'key manager' =>
  access === 'manager' || access === 'key manager';

type Declared = Omit<Endpoint<Management>, 'tag' | 'scopes' | 'errors'> & { errors?: EndpointErrors };

/** An endpoint that reads its body and writes its response itself. */
export function managementEndpoint(
  tag: string,
  declared: Declared,
  access: Access = 'manager',
): Endpoint<{ management: Management }> {
  return {
    ...declared,
    tag,
    scopes: manages(access) ? ['full_access'] : [access, 'full_access'],
    errors: { ...(manages(access) ? managementErrors : readErrors), ...declared.errors },
    handler: ({ management }) => declared.handler(management),
  };
}

const managementErrors: EndpointErrors = {
  UNAUTHORIZED: true,
  FORBIDDEN: 'The key lacks `full_access`, a `domain_scope` restricts it, or it is a test key.',
  RATE_LIMIT_EXCEEDED: true,
  SEND_FAILED: 'The service failed. Try again.',
};

/** The arguments of `respond`. */
interface Call<Found, Body, Query> extends Management {
  context: Context;
  caller: Caller;
  orgId: string;
  now: number;
  /** The item that the path names. */
  found: Found;
  body: Body;
  query: Query;
}

/** A successful response: its documentation, and the schema that `respond` is checked against. */
interface Answer<Schema extends z.ZodType> {
  description: string;
  content: Content;
  schema: Schema;
}

interface Responding<
  Found,
  Body extends z.ZodType,
  Query extends z.ZodType,
  Members extends z.ZodType<object, object>,
> extends Omit<Declared, 'query' | 'body' | 'response' | 'handler'> {
  query?: Query;
  /** JSON of at most 64 KiB. */
  body?: Body | NoBody;
  response: Answer<Members>;
  /** Maximum number of these calls that an organization may have in progress; for calls that take long. */
  maxInFlight?: number;
  /** Resolves to the members of the response, without `success`. */
  respond(call: Call<Found, z.output<Body>, z.output<Query>>): Promise<Omit<z.input<Members>, 'success'>>;
}

/** Any of them: `resource` has checked that `respond` fits what is declared beside it. */
type AnyResponding = Omit<Responding<unknown, z.ZodType, z.ZodType, z.ZodType<object, object>>, 'respond'> & {
  respond(call: never): Promise<object>;
};

/** How a path names one item of a resource. */
interface Item<Found> {
  /** The resource in errors, such as `key`. */
  noun: string;
  parameter: Parameter;
  /** The refusal of a malformed name. */
  invalid: string;
  /** The parameter in canonical form; null if it is malformed. */
  parse(text: string): string | null;
  /** Finds only what belongs to the organization, so that an item of another one is NOT_FOUND. */
  find(db: Db, orgId: string, name: string, caller: Caller, context: Context): Promise<Found | null>;
}

/** Items with a UUID in the path. */
export function byId<Found>(
  noun: string,
  find: (db: Db, id: string, orgId: string, caller: Caller) => Promise<Found | null>,
  description = 'The id of the resource.',
): Item<Found> {
  return {
    noun,
    parameter: pathParameter('id', description, exampleId, 'uuid'),
    invalid: 'The id in the path is not a UUID.',
    parse: uuidIn,
    find: (db, orgId, id, caller) => find(db, id, orgId, caller),
  };
}

/** Declares the endpoints of a resource: those of the whole collection, and those of one item. */
export function resource<Found>(tag: string, item?: Item<Found>, access: Access = 'manager') {
  return {
    collection: <B extends z.ZodType, Q extends z.ZodType, M extends z.ZodType<object, object>>(
      declared: Responding<null, B, Q, M>,
    ) => declare({ tag, access }, declared, schemaOf(declared.body) ? { BAD_REQUEST: invalidBody } : {}),
    item: <B extends z.ZodType, Q extends z.ZodType, M extends z.ZodType<object, object>>(
      declared: Responding<Found, B, Q, M>,
    ) => {
      const { noun, invalid } = item!;
      const errors = {
        BAD_REQUEST: schemaOf(declared.body) ? invalid.replace(/\.$/, ', or the body is not JSON.') : invalid,
        NOT_FOUND: `The ${noun} does not exist or belongs to another organization.`,
      };
      return declare({ tag, access, item }, declared, errors);
    },
  };
}

interface Resource {
  tag: string;
  access: Access;
  item?: Item<unknown> | undefined;
}

function declare(
  of: Resource,
  declared: AnyResponding,
  errors: EndpointErrors,
): Endpoint<{ management: Management }> {
  const { body: given, maxInFlight, respond, ...rest } = declared;
  const body = schemaOf(given);
  const endpoint: Declared = {
    ...rest,
    ...(of.item && { parameters: [of.item.parameter] }),
    ...(given && { body: body ? smallBody(body) : noBody }),
    errors: { ...(rest.query && { VALIDATION_ERROR: invalidQuery }), ...errors, ...rest.errors },
    handler: (parts) => handlerOf(of, declared, parts),
  };
  return managementEndpoint(of.tag, endpoint, of.access);
}

function handlerOf(
  { access, item }: Resource,
  { body: given, query, maxInFlight, respond }: AnyResponding,
  parts: Management,
): Middleware {
  const body = schemaOf(given);
  const slots = maxInFlight === undefined ? undefined : new CallSlots({ ofOne: maxInFlight });
  return async (context) => {
    let release: (() => void) | undefined;
    try {
      const caller = await enter(context, parts.authorize, access, async ({ orgId }) => {
        release = slots?.take(context, orgId);
      });
      const { orgId } = caller;
      const members = await respond({
        ...parts,
        context,
        caller,
        orgId,
        query: query && readQuery(context, query),
        found: item && (await findItem(context, caller, parts.db, item)),
        body: body && (await readJson(context, body, () => parts.admission.acquire(orgId))),
        now: parts.clock.now(),
      } as never);
      context.body = { success: true, ...members };
    } finally {
      release?.();
    }
  };
}

async function findItem<Found>(
  context: Context,
  caller: Caller,
  db: Db,
  { noun, parameter, invalid, parse, find }: Item<Found>,
): Promise<Found> {
  const name = parse(context.params[parameter.name]);
  if (name === null) throw new Refusal('BAD_REQUEST', invalid);
  return requireFound(await find(db, caller.orgId, name, caller, context), noun);
}

/** `admit` can refuse (429) before the call is counted. */
async function enter(
  context: Context,
  authorize: Authorize,
  access: Access,
  admit?: (caller: Caller) => Promise<void>,
): Promise<Caller> {
  if (!manages(access)) return authorize.enter(context, access, admit);
  context.set('Cache-Control', 'no-store');
  const caller = await authorize.enter(context, 'full_access', admit);
  requireManager(caller, access === 'key manager' ? 'keys' : 'all');
  return caller;
}

/** Resolves to the organization that the key manages. */
export async function authorizeManager(
  context: Context,
  authorize: Authorize,
  admit: (orgId: string) => Promise<void>,
): Promise<string> {
  return (await enter(context, authorize, 'manager', ({ orgId }) => admit(orgId))).orgId;
}

function schemaOf<Body extends z.ZodType>(body: Body | NoBody | undefined): Body | undefined {
  return body === noBody ? undefined : (body as Body | undefined);
}

/** The body that readJson reads. */
function smallBody(schema: z.ZodType) {
  return { description: 'At most 64 KiB.', content: { 'application/json': schema }, limits: smallJson };
}

/** The slot is held only while the body is read, because the work after that can take long. */
async function readJson<Schema extends z.ZodType>(
  context: Context,
  schema: Schema,
  acquireSlot: () => Promise<ByteHold | null>,
): Promise<z.output<Schema>> {
  const slot = await acquireSlot();
  if (!slot) throw new BodyBudgetExceeded();
  const bytes = await readBody(context.req, slot, smallJson).finally(() => slot.release());
  return checked(schema, withoutNulls(schema, await parseJson(bytes)));
}

/** Reads one row more than the page has, to know whether there is a next page. */
export async function readPage<Row extends { id: string }>(
  { limit, after }: { limit: number; after?: string | undefined },
  read: (page: { after: string | undefined; limit: number }) => Promise<Row[]>,
): Promise<{ page: Row[]; next: string | null }> {
  const rows = await read({ after, limit: limit + 1 });
  const page = rows.slice(0, limit);
  return { page, next: rows.length > limit ? page.at(-1)!.id : null };
}

export function requireFound<Found>(found: Found | null, noun: string): Found {
  if (found !== null) return found;
  throw new Refusal('NOT_FOUND', noSuch(noun));
}

const noSuch = (noun: string) => `There is no such ${noun}.`;

/** Aborts when the connection closes, because the client disconnected or the service stops, so that long work ends. */
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

/** The schema of a successful response. */
export function success<Shape extends z.ZodRawShape>(members: Shape) {
  return z.object({ success: z.literal(true), ...members });
}

/** A successful response. */
export function answer<Schema extends z.ZodType>(description: string, schema: Schema): Answer<Schema> {
  return { ...jsonResponse(description, schema), schema };
}

/** The response of calls that have nothing to report. */
export const done = success({});

export function doneAnswer(description: string) {
  return answer(description, done);
}

export const nextId = z
  .uuid()
  .nullable()
  .meta({ description: 'The cursor of the next page: pass it as `after`. Null on the last page.' });

const invalidBody = 'The body is not JSON or is larger than 64 KiB.';
