/** What the operations have in common that manage an organization (api/management.ts). */
import type { RefusalCode } from '../../mail/refusal.ts';
import type { Explained } from './error-responses.ts';
import { headerRefs } from './header-components.ts';
import { query } from './list-paths.ts';
import type { DocumentedContent, Example, Operation, Parameter } from './openapi-document.ts';
import { requestId } from './operations.ts';
import { content, otherMethod, refusals } from './responses.ts';

export const managingTags = [
  { name: 'Domains', description: 'Sender domains, and the DNS records to publish for them.' },
  { name: 'Keys', description: 'API keys.' },
  { name: 'Suppressions', description: 'Addresses that are not written to any more.' },
  { name: 'Webhooks', description: 'Endpoints that are told of events.' },
  { name: 'Credits', description: 'What may still be sent.' },
];

/** Codes that not all have, each in the operation's own words. */
type Errors = Partial<Record<'VALIDATION_ERROR' | 'BAD_REQUEST' | 'NOT_FOUND', Partial<Explained>>>;

interface Managing {
  operationId: string;
  tag: string;
  summary: string;
  description: string;
  parameters?: Parameter[];
  body?: DocumentedContent;
  bodyIs?: string;
  /** What the answer is, and its content. */
  answerIs: string;
  answer: DocumentedContent;
  errors?: Errors;
  /** The methods of the path, as `Allow` has them. */
  allow: string;
}

const everyCode = ['UNAUTHORIZED', 'FORBIDDEN', 'RATE_LIMIT_EXCEEDED', 'SEND_FAILED'] as const;

const everyWord = {
  FORBIDDEN: {
    when: 'The key lacks `full_access`, or is restricted to domains.',
    message: 'The API key lacks the scope full_access.',
  },
  SEND_FAILED: {
    when: 'Something failed inside the service; try again.',
    message:
      'The request failed inside the service. Nothing was charged; try again. (request 0198c9a4-6f1e-7d52-b3a4-5f0c8b1d9e27)',
  },
};

export function managing({ tag, parameters = [], body, errors = {}, ...told }: Managing): Operation {
  const codes = [...(Object.keys(errors) as RefusalCode[]), ...everyCode];
  return {
    operationId: told.operationId,
    tags: [tag],
    summary: told.summary,
    description: told.description,
    security: [{ apiKey: ['full_access'] }],
    parameters: [...parameters, requestId],
    ...(body && {
      requestBody: { required: true, description: told.bodyIs ?? '64 KiB at most.', content: body },
    }),
    responses: {
      200: { description: told.answerIs, headers: headerRefs(), content: told.answer },
      ...refusals(codes, { ...everyWord, ...errors }),
      ...otherMethod(told.allow),
    },
  };
}

export const exampleId = '0198c9a4-6f1e-7d52-b3a4-5f0c8b1d9e27';

export function inPath(name: string, description: string, example: string, format?: string): Parameter {
  const schema = { type: 'string' as const, ...(format && { format }) };
  return { name, in: 'path', required: true, description, schema, example };
}

export const idInPath = inPath('id', 'Its id.', exampleId, 'uuid');

export function paging(fallback: number, max: number): Parameter[] {
  return [
    query('limit', `How many at most; ${fallback} unless given.`, {
      type: 'integer',
      minimum: 1,
      maximum: max,
    }),
    query('after', 'Where to go on: the `next` of an answer.', { type: 'string' }),
  ];
}

export function one(schema: string, summary: string, value: object): DocumentedContent {
  return content(schema, { example: { summary, value } satisfies Example });
}

export const doneAnswer = one('Done', 'Done', { success: true });

export const badLimit = (max: number): Partial<Explained> => ({
  when: 'A parameter of the query is not as it should be; `issues` lists every violation.',
  message: 'A parameter of the query is not valid.',
  issues: [
    {
      ...{ code: 'custom', expected: `a whole number from 1 to ${max}` },
      ...{ received: 'string of 1 characters', path: ['limit'] },
      message: `limit: must be a whole number from 1 to ${max}`,
    },
  ],
});

export function badMember(path: string, expected: string, received: string): Partial<Explained> {
  const message = `${path}: Invalid input: expected ${expected}, received ${received}`;
  return { issues: [{ code: 'invalid_type', expected, received, path: [path], message }] };
}

export const badType: Partial<Explained> = {
  when: 'The body is not JSON, or larger than 64 KiB.',
  message: 'Content-Type must be application/json.',
};

export const badId: Partial<Explained> = {
  when: 'The id in the path is not a UUID, or the body is not JSON.',
  message: 'The id in the path is not a UUID.',
};

export function missing(what: string): Partial<Explained> {
  return {
    when: `There is no such ${what}, or it is another organization's.`,
    message: `There is no such ${what}.`,
  };
}
