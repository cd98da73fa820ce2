/**
 * The errors of the public API (docs/api.md sections 2.5 and 7): for each code, when it occurs and an example message;
 * for each status, the schema of its body. The codes are in mail/refusal.ts.
 */
import { z } from 'zod';
import { type RefusalCode, statusOf } from '../../mail/refusal.ts';
import type { ErrorText } from '../endpoint.ts';

export const defaultErrors: Record<RefusalCode, ErrorText> = {
  VALIDATION_ERROR: {
    when: 'The body fails schema validation; `issues` lists every violation.',
    message: 'The request is not valid.',
    issues: [
      {
        code: 'invalid_type',
        expected: 'string',
        received: 'undefined',
        path: ['subject'],
        message: 'subject: Invalid input: expected string, received undefined',
      },
    ],
  },
  BAD_REQUEST: {
    when: 'The body is not JSON or is larger than 20 MiB, `from` is not a valid sender, or the idempotency key was used for a different request.',
    message: 'This idempotency key was used for a different request. Use a new key for each request.',
  },
  UNAUTHORIZED: {
    when: 'The API key is missing, malformed or inactive.',
    message: 'The header Authorization: Bearer <API key> is missing or malformed.',
  },
  INSUFFICIENT_CREDITS: {
    when: 'Neither the quota nor the wallet has credits.',
    message: 'Neither the quota nor the wallet has credits left.',
  },
  FORBIDDEN: {
    when: 'The key lacks the scope that this call needs.',
    message: 'The API key lacks the scope email:send.',
  },
  DOMAIN_NOT_ALLOWED: {
    when: "The sender's domain is outside the key's `domain_scope`.",
    message: 'This API key cannot send from example.com. It can send from example.net.',
  },
  DOMAIN_NOT_FOUND: {
    when: "The sender's domain is not registered in the organization.",
    message: 'The domain example.com is not registered in this organization.',
  },
  DOMAIN_NOT_VERIFIED: {
    when: "The sender's domain is registered, but its DKIM record has not been found yet.",
    message: 'The domain example.com is not verified yet. Publish its DKIM record, then verify the domain.',
  },
  NOT_FOUND: {
    when: 'The email does not exist or belongs to another organization.',
    message: 'There is no such email.',
  },
  ALL_RECIPIENTS_SUPPRESSED: {
    when: 'Every recipient is on the suppression list.',
    message: 'Every recipient is on the suppression list.',
  },
  RATE_LIMIT_EXCEEDED: {
    when: 'A rate limit is used up, or the service is too busy to accept the call; `Retry-After` says how long to wait.',
    message: 'This organization may make 2 requests a second; wait for the next.',
  },
  SEND_FAILED: {
    when: 'The service failed. Nothing was sent, and credits are refunded. Try again.',
    message:
      'The service failed to accept the email. Nothing was charged. Try again. (request 0198c9a4-6f1e-7d52-b3a4-5f0c8b1d9e27)',
  },
};

const issue = z
  .object({
    code: z.string().meta({ description: 'The kind of violation.', examples: ['invalid_type'] }),
    expected: z.string().meta({ description: 'The value or type that is expected.' }),
    received: z.string().meta({ description: 'The value or type that was received.' }),
    path: z.array(z.string()).meta({
      description: 'The path to the field: names of members and indexes of arrays.',
      examples: [['to', '1']],
    }),
    message: z.string(),
  })
  .meta({ description: 'One violation of the schema.' });

function bodyOf(codes: [RefusalCode, ...RefusalCode[]]) {
  const issues = z.array(issue);
  const takesIssues = codes.includes('VALIDATION_ERROR');
  return z.object({
    error: z.enum(codes).meta({ description: 'The code for your program to act on.' }),
    message: z.string().meta({ description: 'An explanation for people. Its wording may change.' }),
    issues: takesIssues
      ? issues.meta({ description: 'The violations; empty unless `error` is VALIDATION_ERROR.' })
      : issues.max(0).meta({ description: 'Empty.' }),
  });
}

/** The name of each status's schema. */
export const errorNames: Record<number, string> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  402: 'PaymentRequired',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  422: 'UnprocessableContent',
  429: 'TooManyRequests',
  500: 'InternalServerError',
};

const codes = Object.keys(statusOf) as RefusalCode[];

export const errorSchemas: Record<string, z.ZodType> = {
  Issue: issue,
  ...Object.fromEntries(
    Object.entries(errorNames).map(([status, name]) => {
      const own = codes.filter((code) => statusOf[code] === Number(status));
      return [name, bodyOf((own.length > 0 ? own : ['BAD_REQUEST']) as [RefusalCode])];
    }),
  ),
};
