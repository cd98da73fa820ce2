/** An endpoint's declaration as an operation of the OpenAPI document. */
import { z } from 'zod';
import type { Content, Endpoint, EndpointErrors } from '#front/api/endpoint.ts';
import { type RefusalCode, statusOf } from '#platform/values/refusal.ts';
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
import { examplesOf, type RecordedExamples } from './recorded-examples.ts';

type Declared = Omit<Endpoint<never>, 'handler'>;

export function operationOf(endpoint: Declared, recorded: RecordedExamples): Operation {
  const { operationId, tag, summary, description, scopes, body, response, errors } = endpoint;
  const { headers = [] } = endpoint;
  return {
    operationId,
    tags: [tag],
    summary,
    description,
    security: scopes.map((scope) => ({ apiKey: [scope] })),
    parameters: parametersOf(endpoint),
    ...(body &&
      'content' in body && {
        requestBody: {
          required: true,
          description: body.description,
          content: documented(body.content, recorded, operationId, 'request'),
        },
      }),
    responses: {
      200: {
        description: response.description,
        headers: headerRefs(...headers, ...(response.headers ?? [])),
        content: documented(response.content, recorded, operationId, '200'),
      },
      ...errorResponses(errors, headers, recorded, operationId),
      405: errorResponse(recorded, operationId, 405, { BAD_REQUEST: methodNotAllowed }),
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

function documented(
  content: Content,
  recorded: RecordedExamples,
  operationId: string,
  body: string,
): DocumentedContent {
  return Object.fromEntries(
    Object.entries(content).map(([type, schema]) => {
      const examples = examplesOf(recorded, `${operationId} ${body} ${type} `);
      return [type, { schema: schemaRef(schema) ?? inlineSchema(schema), ...(examples && { examples }) }];
    }),
  );
}

/** The headers that only responses of this status have. */
const ownHeaders: Record<number, string[]> = {
  401: ['WWW-Authenticate'],
  405: ['Allow'],
  429: ['Retry-After'],
};

/** 405 has no code of its own: its `error` is BAD_REQUEST. */
const methodNotAllowed = 'The path does not take this method; `Allow` lists those that it takes.';

/** One response for each status, with the error codes of that status in the order of their table. */
function errorResponses(
  errors: EndpointErrors,
  headers: string[],
  recorded: RecordedExamples,
  operationId: string,
): Record<string, DocumentedResponse> {
  const codes = (Object.keys(defaultErrors) as RefusalCode[]).filter((code) => code in errors);
  const byStatus = Object.groupBy(codes, (code) => statusOf[code]);
  return Object.fromEntries(
    Object.entries(byStatus).map(([status, own]) => {
      const texts = own.map((code) => [code, errors[code] === true ? defaultErrors[code] : errors[code]!]);
      return [
        status,
        errorResponse(recorded, operationId, Number(status), Object.fromEntries(texts), headers),
      ];
    }),
  );
}

/** `whenByCode`: when each of the status's codes occurs. */
function errorResponse(
  recorded: RecordedExamples,
  operationId: string,
  status: number,
  whenByCode: Record<string, string>,
  more: string[] = [],
): DocumentedResponse {
  const texts = Object.entries(whenByCode);
  const examples = texts.flatMap(([code, summary]) => {
    const found = recorded[`${operationId} ${status} application/json ${code}`];
    return found ? [[code, { summary, value: found.value }]] : [];
  });
  return {
    description: texts.map(([code, when]) => `\`${code}\`: ${when}`).join('\n\n'),
    headers: headerRefs(...more, ...(ownHeaders[status] ?? [])),
    content: {
      'application/json': {
        schema: refTo('schemas', errorNames[status]!),
        examples: Object.fromEntries(examples),
      },
    },
  };
}
