/** The operations of the public API, each with its parameters, its examples, and every answer that it has. */

import { emailExamples, emailId, sendExamples } from './examples.ts';
import { headerRefs } from './header-components.ts';
import type { Operation, Parameter } from './openapi-document.ts';
import { content, otherMethod, refusals } from './responses.ts';

export const requestId: Parameter = {
  name: 'X-Request-Id',
  in: 'header',
  required: false,
  description:
    'An id of your own for the request, of 1 to 128 letters, digits and `_.:+/=-`; the answer and the log repeat it. ' +
    'Where it is missing or unfit, one is made.',
  schema: { type: 'string' },
};

export const sendEmail: Operation = {
  operationId: 'sendEmail',
  tags: ['Email'],
  summary: 'Send an email',
  description:
    'Takes one email for one to ten recipients. The answer is 200 when the email is on disk and its credits are ' +
    'spent, one for each accepted recipient. Recipients on the suppression list, and those that the credits do not ' +
    'reach to, are skipped and named.',
  security: [{ apiKey: ['email:send'] }, { apiKey: ['full_access'] }],
  parameters: [
    {
      name: 'Idempotency-Key',
      in: 'header',
      required: false,
      description: 'Means the same as `idempotencyKey` in the body, where the body has none.',
      schema: { type: 'string', minLength: 1, maxLength: 255 },
      example: 'receipt-4711',
    },
    requestId,
  ],
  requestBody: {
    required: true,
    description: 'The email; 20 MiB at most.',
    content: content('SendRequest', sendExamples.requests),
  },
  responses: {
    200: {
      description: 'The email is accepted, for all or for some of its recipients.',
      headers: headerRefs('Idempotent-Replayed'),
      content: content('SendAnswer', sendExamples.answers),
    },
    ...refusals([
      'VALIDATION_ERROR',
      'BAD_REQUEST',
      'UNAUTHORIZED',
      'INSUFFICIENT_CREDITS',
      'FORBIDDEN',
      'DOMAIN_NOT_ALLOWED',
      'DOMAIN_NOT_FOUND',
      'DOMAIN_NOT_VERIFIED',
      'ALL_RECIPIENTS_SUPPRESSED',
      'RATE_LIMIT_EXCEEDED',
      'SEND_FAILED',
    ]),
    ...otherMethod('POST, HEAD, GET'),
  },
};

export const getEmail: Operation = {
  operationId: 'getEmail',
  tags: ['Email'],
  summary: 'Ask what became of an email',
  description:
    'Tells everything that is known of one email of your organization: its status, each recipient with the attempts ' +
    'made, the last reply and the bounce, and what happened in order.',
  security: [{ apiKey: ['email:read'] }, { apiKey: ['full_access'] }],
  parameters: [
    {
      name: 'id',
      in: 'path',
      required: true,
      description: 'The `emailId` that the send answered.',
      schema: { type: 'string', format: 'uuid' },
      example: emailId,
    },
    requestId,
  ],
  responses: {
    200: {
      description: 'The email.',
      headers: headerRefs(),
      content: content('Email', emailExamples),
    },
    ...refusals(
      ['BAD_REQUEST', 'UNAUTHORIZED', 'FORBIDDEN', 'NOT_FOUND', 'RATE_LIMIT_EXCEEDED', 'SEND_FAILED'],
      {
        BAD_REQUEST: {
          when: 'The id in the path is not a UUID.',
          message: 'The email id in the path is not a UUID.',
        },
        FORBIDDEN: { message: 'The API key lacks the scope email:read.' },
        SEND_FAILED: {
          message:
            'The request failed inside the service. Nothing was charged; try again. (request 0198c9a4-6f1e-7d52-b3a4-5f0c8b1d9e27)',
        },
      },
    ),
    ...otherMethod('HEAD, GET'),
  },
};

export const getOpenApi: Operation = {
  operationId: 'getOpenApi',
  tags: ['Reference'],
  summary: 'Read this document',
  description: 'This OpenAPI document. It needs no key and counts in no limit.',
  security: [],
  parameters: [requestId],
  responses: {
    200: {
      description: 'An OpenAPI 3.1 document.',
      headers: headerRefs(),
      content: {
        'application/json': {
          schema: {
            type: 'object',
            properties: { openapi: { type: 'string' }, info: { type: 'object' }, paths: { type: 'object' } },
            required: ['openapi', 'info', 'paths'],
          },
        },
      },
    },
    ...otherMethod('HEAD, GET'),
  },
};
