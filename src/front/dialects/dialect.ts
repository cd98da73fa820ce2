/**
 * A dialect is another service's HTTP API, as that service's SDKs speak it, on our own accept, searches and lists. A
 * dialect translates a request, calls the same services as our API, and translates the result. Rules of sending belong to those
 * services, never to a dialect.
 */
import type { Context } from 'koa';
import { z } from 'zod';
import type { Caller, Grant } from '#accounts/api-keys.ts';
import type { Management } from '#front/api/management.ts';
import type { AcceptBatch } from '#front/api/send/accept-batch.ts';
import type { SendCapacity } from '#front/api/send/admit-send.ts';
import type { GivenAttachment } from '#front/api/send/attachments.ts';
import type { CountedBatch } from '#front/api/send/counted-batch.ts';
import type { Credential } from '#front/http/authorize.ts';
import type { FormBody, JsonBody, JsonOrForm, NoBody } from '#front/http/body-limits.ts';
import { checked } from '#front/http/issues.ts';
import { parametersOf, uuidIn } from '#front/http/query.ts';
import type { ReadSubmitted } from '#front/submission/read-submitted.ts';
import type { Accept, DryRun } from '#mail/accept/accept.ts';
import type { Attachment } from '#mail/compose/attachment.ts';
import type { FileLinks } from '#platform/base/file-links.ts';
import { domainOf } from '#platform/values/address.ts';
import type { DialectName } from '#platform/values/glossary.ts';
import { trimBlanks, withoutHidden } from '#platform/values/hidden-characters.ts';
import { Refusal } from '#platform/values/refusal.ts';
import { detectExtension } from '#platform/vendor/nodemailer.ts';
import type { SentFile } from './sent-files.ts';

export interface Dialect {
  name: DialectName;
  /**
   * The proof of who calls, where this service's SDKs put it: the key itself, or a signature that stands for one. Null if the
   * request has nothing there.
   */
  verify(context: Context): Credential | null;
  routes: readonly DialectRoute[];
  /** Without a key: what a link that we signed leads to. */
  openRoutes?: readonly OpenRoute[];
  /** Whether a request at a path that Postern does not have is one to this service, and so is answered in its form. */
  claims(context: Context, path: string): boolean;
  /**
   * Sets the status and the body of an error. The headers of the rate limit are set already, and `Allow` if the path has
   * other methods.
   */
  writeRefusal(context: Context, refusal: Refusal): void;
}

type Services = Pick<
  Management,
  | 'db'
  | 'clock'
  | 'seal'
  | 'names'
  | 'resolve'
  | 'keepKeysMs'
  | 'allowPrivate'
  | 'eventSignal'
  | 'receivedReading'
  | 'receivedLinks'
>;

export interface DialectParts extends SendCapacity, Services {
  accept: Accept;
  dryRun: DryRun;
  onError(what: string, error: unknown): void;
  fileLinks: FileLinks;
  /** The attached files of a message; only the one with the id `wanted` has its content. Null: the message cannot be read. */
  readFiles(orgId: string, message: Buffer, wanted: string | null): Promise<SentFile[] | null>;
  readSubmitted: ReadSubmitted;
  /** The public URL of this service. */
  baseUrl(): string;
}

export interface DialectCall extends DialectParts {
  /** Accepts several emails with one commit, counted as as many requests of the day. */
  acceptAll(batch: CountedBatch): ReturnType<AcceptBatch>;
  context: Context;
  /** The parameters in the path, decoded. */
  params: Record<string, string>;
  /** The name of the dialect is kept with the emails that this caller sends. */
  caller: Caller & { dialect: DialectName };
  orgId: string;
  /** Fetches attachments that are at a URL. */
  fetchAll(files: GivenAttachment[]): Promise<Attachment[]>;
  /** The parsed body; undefined if it is empty. A form is a `Form` (form.ts). */
  body: unknown;
  now: number;
}

export interface DialectRoute {
  /** The method and the path as a pattern of the router, for instance `GET /emails/:id`. */
  route: string;
  grant: Grant;
  /** Set for a route with full_access that is about keys: it is open to test keys. */
  manages?: 'keys';
  /** The methods POST, PUT, PATCH and DELETE need it. Without it the body is not read: some SDKs send JSON with a GET. */
  body?: JsonBody | FormBody | JsonOrForm | NoBody;
  /** Resolves to the body of the response. */
  respond(call: DialectCall): Promise<unknown>;
}

export interface OpenRoute {
  /** As that of a DialectRoute, with GET. */
  path: string;
  respond(call: OpenCall): Promise<unknown>;
}

export type OpenCall = DialectParts & Pick<DialectCall, 'context' | 'params' | 'now'>;

/** PHP writes an object without members as an empty list. */
export const isEmptyList = (given: unknown) => Array.isArray(given) && given.length === 0;

export function recordOf<Value extends z.ZodType>(value: Value) {
  return z.preprocess((given) => (isEmptyList(given) ? {} : given), z.record(z.string(), value));
}

/** Parameters that the call reads; `nameOf`: as they are written here. */
export function knowParameters(
  { state }: Context,
  names: string[],
  nameOf?: (given: string) => string,
): void {
  state.readQuery = { parameters: [...(state.readQuery?.parameters ?? []), ...names], nameOf };
}

/** The parameters of the query. Those that the schema does not name are named in the response (serve-dialects.ts). */
export function readParameters<Schema extends z.ZodObject>(
  context: Context,
  schema: Schema,
  given = parametersOf(context, schema),
): z.output<Schema> {
  knowParameters(context, Object.keys(schema.shape));
  return checked(schema, given);
}

/** Programs write numbers and switches of JSON where these services mean a text, and the services take them as one. */
export const scalarText = z
  .union([z.string(), z.number(), z.boolean()], { error: 'must be a string' })
  .transform(String);

/** An address without a name. */
export const plainAddress = z
  .string()
  .overwrite(trimBlanks)
  .refine((text) => domainOf(text) !== null, {
    error: ({ input }) => `must be an email address${withoutHidden(input as string)}`,
  });

/** A member that is null is absent, such as the address of a visitor that a program does not know. */
export const pairs = recordOf(z.unknown()).transform((given) =>
  Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null)),
);

/** The name of a file that a program gave none, such as an image of a text: with the ending that its type has. */
export function fileName(given: unknown, type: unknown): unknown {
  if (given) return given;
  const known = typeof type === 'string' && type !== '' ? detectExtension(type.split(';')[0]!.trim()) : 'bin';
  return known === 'bin' ? 'attachment' : `attachment.${known}`;
}

export function requireItem<Item>(item: Item | null, noun: string): Item {
  if (item !== null) return item;
  throw new Refusal('NOT_FOUND', `There is no such ${noun}.`);
}

/** The item that a UUID in the path names. */
export async function requireById<Item>(
  text: string,
  find: (id: string) => Promise<Item | null>,
  noun: string,
): Promise<Item> {
  const id = uuidIn(text);
  return requireItem(id === null ? null : await find(id), noun);
}
