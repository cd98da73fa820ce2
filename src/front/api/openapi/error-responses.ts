/**
 * The errors of the public API (docs/api.md sections 2.5 and 7): for each code, when it occurs; for each status, the
 * schema of its body. The codes are in platform/values/refusal.ts.
 */
import { z } from 'zod';
import { type RefusalCode, statusOf } from '#platform/values/refusal.ts';

export const defaultErrors: Record<RefusalCode, string> = {
  VALIDATION_ERROR: 'The body fails schema validation; `issues` lists every violation.',
  BAD_REQUEST:
    'The body is not JSON or is larger than 20 MiB, `from` is not a valid sender, or the idempotency key was used for a different request.',
  UNAUTHORIZED: 'The API key is missing, malformed or inactive.',
  INSUFFICIENT_CREDITS: 'Neither the quota nor the wallet has credits.',
  FORBIDDEN: 'The key lacks the scope that this call needs.',
  DOMAIN_NOT_ALLOWED: "The sender's domain is outside the key's `domain_scope`.",
  DOMAIN_NOT_FOUND: "The sender's domain is not registered in the organization.",
  DOMAIN_NOT_VERIFIED: "The sender's domain is registered, but its DKIM record has not been found yet.",
  NOT_FOUND: 'The email does not exist or belongs to another organization.',
  ALL_RECIPIENTS_SUPPRESSED: 'Every recipient in `to` is on the suppression list.',
  RATE_LIMIT_EXCEEDED:
    'A rate limit is used up, or the service is too busy to accept the call; `Retry-After` says how long to wait.',
  SEND_FAILED: 'The service failed. Nothing was sent, and credits are refunded. Try again.',
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
    index: z
      .int()
      .optional()
      .meta({ description: 'Only for an atomic batch: the element that is the reason.' }),
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

/** The error of an element of a batch. */
export const anyError = bodyOf(codes as [RefusalCode]);

export const errorSchemas: Record<string, z.ZodType> = {
  Issue: issue,
  AnyError: anyError,
  ...Object.fromEntries(
    Object.entries(errorNames).map(([status, name]) => {
      const own = codes.filter((code) => statusOf[code] === Number(status));
      return [name, bodyOf((own.length > 0 ? own : ['BAD_REQUEST']) as [RefusalCode])];
    }),
  ),
};
