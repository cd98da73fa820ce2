/**
 * The declaration of an endpoint of the public API. The router, the 405 response with `Allow`, the OpenAPI document
 * and the table of routes in docs/ derive from it. Each resource folder declares its endpoints next to their handlers;
 * all-endpoints.ts lists all of them.
 */
import type { Middleware } from 'koa';
import type { z } from 'zod';
import type { Grant } from '#accounts/api-keys.ts';
import type { MediaType, Method, Parameter } from '#front/api/openapi/openapi-types.ts';
import type { CsvBody, JsonBody, NoBody } from '#front/http/body-limits.ts';
import type { RefusalCode } from '#platform/values/refusal.ts';

/** When each error code occurs; true: as openapi/error-responses.ts says. */
export type EndpointErrors = Partial<Record<RefusalCode, string | true>>;

export type Content = Partial<Record<MediaType, z.ZodType>>;

export interface Endpoint<Parts> {
  /** The path is below /api/public. A name in braces is a parameter and matches one segment. */
  route: EndpointRoute;
  operationId: string;
  tag: string;
  summary: string;
  description: string;
  /** A key needs one of these; an empty list means that no key is needed. */
  scopes: readonly Grant[];
  /** Headers that any of the responses can have. */
  headers?: string[];
  /** Parameters in the path and in headers. */
  parameters?: Parameter[];
  /** The schema of the query: each member is a parameter, described by its `meta`. */
  query?: z.ZodType;
  /** The methods POST, PUT, PATCH and DELETE need it. */
  body?: DescribedBody | NoBody;
  /** The response on success. `headers` are those that not every response has. */
  response: { description: string; headers?: string[]; content: Content };
  errors: EndpointErrors;
  handler: (parts: Parts) => Middleware;
}

interface DescribedBody {
  description: string;
  content: Content;
  limits: JsonBody | CsvBody;
}

export type EndpointRoute = `${Uppercase<Method>} /${string}`;

export function parseRoute(route: EndpointRoute): { method: Method; path: string } {
  const [method, path] = route.split(' ') as [string, string];
  return { method: method.toLowerCase() as Method, path };
}

export function jsonResponse(description: string, schema: z.ZodType): Endpoint<never>['response'] {
  return { description, content: { 'application/json': schema } };
}

/** An id for examples of parameters. */
export const exampleId = '0198c9a4-6f1e-7d52-b3a4-5f0c8b1d9e27';

export function pathParameter(
  name: string,
  description: string,
  example: string,
  format?: string,
): Parameter {
  return {
    name,
    in: 'path',
    required: true,
    description,
    schema: { type: 'string', ...(format && { format }) },
    example,
  };
}

/** The errors of every endpoint that reads, in addition to its own. */
export const readErrors: EndpointErrors = {
  UNAUTHORIZED: true,
  FORBIDDEN: true,
  RATE_LIMIT_EXCEEDED: true,
  SEND_FAILED: true,
};

export const invalidQuery = 'A parameter of the query is not valid; `issues` lists every violation.';
