/** An endpoint's declaration as an operation of the OpenAPI document. */
import { z } from 'zod';
import { type RefusalCode, statusOf } from '../../mail/refusal.ts';
import { type Content, type Endpoint, type EndpointErrors, parseRoute } from '../endpoint.ts';
import { inlineSchema, schemaRef } from './component-schemas.ts';
import { defaultErrors, errorNames } from './error-responses.ts';
import { headerRefs } from './header-components.ts';
import {
  type ComponentSchema,
  type DocumentedContent,
  type DocumentedResponse,
  type Operation,
  type Parameter,
  refTo,
} from './openapi-types.ts';

type Declared = Omit<Endpoint<never>, 'handler'>;

/** `all`: every endpoint, because those of the same path are in `Allow`. */
export function operationOf(endpoint: Declared, all: readonly Declared[]): Operation {
  const { operationId, tag, summary, description, scopes, body, response, errors } = endpoint;
  return {
    operationId,
    tags: [tag],
    summary,
    description,
    security: scopes.map((scope) => ({ apiKey: [scope] })),
    parameters: parametersOf(endpoint),
    ...(body && {
      requestBody: {
        required: true,
        description: body.description,
        content: documented(body.content),
      },
    }),
    responses: {
      200: {
        description: response.description,
        headers: headerRefs(...(response.headers ?? [])),
        content: documented(response.content),
      },
      ...errorResponses(errors),
      405: methodNotAllowed(allowOf(parseRoute(endpoint.route).path, all)),
    },
  };
}

const requestId: Parameter = {
  name: 'X-Request-Id',
  in: 'header',
  required: false,
  description:
    'Your own id for the request: 1 to 128 letters, digits and `_.:+/=-`. The response and the log repeat it. If it is ' +
    'missing or invalid, the service makes one.',
  schema: { type: 'string' },
};

function parametersOf({ parameters = [], query }: Declared): Parameter[] {
  const inPath = parameters.filter((parameter) => parameter.in === 'path');
  const others = parameters.filter((parameter) => parameter.in !== 'path');
  return [...inPath, ...(query ? queryParameters(query) : []), ...others, requestId];
}

function queryParameters(query: z.ZodType): Parameter[] {
  const { properties = {} } = z.toJSONSchema(query, { io: 'input' });
  return Object.entries(properties).map(([name, property]) => {
    const { description = '', example, ...schema } = property as ComponentSchema & { example?: string };
    return { name, in: 'query', required: false, description, schema, ...(example && { example }) };
  });
}

function documented(content: Content): DocumentedContent {
  return Object.fromEntries(
    Object.entries(content).map(([type, { schema, examples }]) => [
      type,
      { schema: schemaRef(schema) ?? inlineSchema(schema), ...(examples && { examples }) },
    ]),
  );
}

/** Headers that only the responses of a status have. */
const ownHeaders: Record<number, string[]> = { 401: ['WWW-Authenticate'], 429: ['Retry-After'] };

/** One response for each status, with the error codes of that status in the order of their table. */
function errorResponses(errors: EndpointErrors): Record<string, DocumentedResponse> {
  const codes = (Object.keys(defaultErrors) as RefusalCode[]).filter((code) => code in errors);
  const byStatus = Object.groupBy(codes, (code) => statusOf[code]);
  return Object.fromEntries(
    Object.entries(byStatus).map(([status, own]) => [status, errorResponse(Number(status), own, errors)]),
  );
}

function errorResponse(status: number, codes: RefusalCode[], errors: EndpointErrors): DocumentedResponse {
  const texts = codes.map((code) => ({ code, ...defaultErrors[code], ...errors[code] }));
  const examples = texts.map(({ code, when, message, issues = [] }) => [
    code,
    { summary: when, value: { error: code, message, issues } },
  ]);
  return {
    description: texts.map(({ code, when }) => `\`${code}\`: ${when}`).join('\n\n'),
    headers: headerRefs(...(ownHeaders[status] ?? [])),
    content: {
      'application/json': {
        schema: refTo('schemas', errorNames[status]!),
        examples: Object.fromEntries(examples),
      },
    },
  };
}

/** The methods of a path as the router finds them: GET takes HEAD too, and `/email/send` is also an `/email/{id}`. */
function allowOf(path: string, all: readonly Declared[]): string {
  const matching = all.map(({ route }) => parseRoute(route)).filter((one) => matches(one.path, path));
  const methods = matching.flatMap(({ method }) =>
    method === 'get' ? ['HEAD', 'GET'] : method.toUpperCase(),
  );
  return [...new Set(methods)].join(', ');
}

function matches(template: string, path: string): boolean {
  const [own, other] = [template, path].map((one) => one.split('/')) as [string[], string[]];
  return own.length === other.length && own.every((part, index) => /^\{/.test(part) || part === other[index]);
}

/** 405 has no code of its own: its `error` is BAD_REQUEST. */
function methodNotAllowed(allow: string): DocumentedResponse {
  const summary = 'The path does not take this method; `Allow` lists those that it takes.';
  const value = { error: 'BAD_REQUEST', message: `This path accepts only ${allow}.`, issues: [] };
  return {
    description: `\`BAD_REQUEST\`: ${summary}`,
    headers: headerRefs('Allow'),
    content: {
      'application/json': {
        schema: refTo('schemas', errorNames[405]!),
        examples: { BAD_REQUEST: { summary, value } },
      },
    },
  };
}
