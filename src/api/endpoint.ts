/**
 * The declaration of an endpoint of the public API. The router, the 405 response with `Allow`, the OpenAPI document
 * and the table of routes in docs/ derive from it. Each resource folder declares its endpoints next to their handlers;
 * all-endpoints.ts lists all of them.
 */
import type { Middleware } from 'koa';
import { z } from 'zod';
import type { Grant } from '../accounts/api-keys.ts';
import type { RefusalCode } from '../mail/refusal.ts';
import type { Example, Examples, MediaType, Method, Parameter } from './openapi/openapi-types.ts';

/** When an error code occurs, and an example of the response that has it. */
export interface ErrorText {
  when: string;
  message: string;
  issues?: object[];
}

/** What an endpoint says about its errors; what it leaves out is in openapi/error-responses.ts. */
export type EndpointErrors = Partial<Record<RefusalCode, Partial<ErrorText>>>;

export type Content = Partial<Record<MediaType, { schema: z.ZodType; examples?: Examples }>>;

export interface Endpoint<Parts> {
  /** The path is below /api/public. A name in braces is a parameter and matches one segment. */
  route: Route;
  operationId: string;
  tag: string;
  summary: string;
  description: string;
  /** A key needs one of these; an empty list means that no key is needed. */
  scopes: readonly Grant[];
  /** Parameters in the path and in headers. */
  parameters?: Parameter[];
  /** The schema of the query: each member is a parameter, described by its `meta`. */
  query?: z.ZodType;
  body?: { description: string; content: Content };
  /** The response on success. `headers` are those that not every response has. */
  response: { description: string; headers?: string[]; content: Content };
  errors: EndpointErrors;
  handler: (parts: Parts) => Middleware;
}

export type Route = `${Uppercase<Method>} /${string}`;

export function parseRoute(route: Route): { method: Method; path: string } {
  const [method, path] = route.split(' ') as [string, string];
  return { method: method.toLowerCase() as Method, path };
}

export function json(schema: z.ZodType, examples: Examples): Content {
  return { 'application/json': { schema, examples } };
}

export function jsonExample(schema: z.ZodType, summary: string, value: object): Content {
  return json(schema, { example: { summary, value } });
}

export function jsonResponse(description: string, schema: z.ZodType, summary: string, value: object) {
  return { description, content: jsonExample(schema, summary, value) };
}

export function text(type: 'text/csv' | 'text/event-stream', name: string, example: Example): Content {
  return { [type]: { schema: z.string(), examples: { [name]: example } } };
}

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

/** The errors of every endpoint that reads, beside its own. */
export const readErrors: EndpointErrors = {
  UNAUTHORIZED: {},
  FORBIDDEN: { message: 'The API key lacks the scope email:read.' },
  RATE_LIMIT_EXCEEDED: {},
  SEND_FAILED: {
    message:
      'The service failed to handle the request. Nothing was charged. Try again. (request 0198c9a4-6f1e-7d52-b3a4-5f0c8b1d9e27)',
  },
};

/** A parameter of the query that its schema refuses. */
export function invalidParameter(path: string, expected: string, received: string): Partial<ErrorText> {
  return {
    when: 'A parameter of the query is not valid; `issues` lists every violation.',
    message: 'A parameter of the query is not valid.',
    issues: [{ code: 'custom', expected, received, path: [path], message: `${path}: must be ${expected}` }],
  };
}

export const invalidLimit = (max: number) =>
  invalidParameter('limit', `a whole number from 1 to ${max}`, 'string of 1 characters');
