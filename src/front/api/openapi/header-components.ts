/** The response headers as components: those of every response, and those of some (docs/api.md section 8). */
import { oneClickWarning } from '#platform/values/one-click.ts';
import { type Header, refTo } from './openapi-types.ts';

const count = { type: 'integer', minimum: 0 } as const;
const seconds = { type: 'integer', minimum: 1 } as const;

const onEveryResponse: Record<string, Header> = {
  'X-RateLimit-Limit': {
    description:
      'Requests allowed in the window that limits you: the current second, unless fewer are left in the day. On 401 it is ' +
      'the window of failed keys from your address. 2147483647 if nothing limits.',
    required: true,
    schema: count,
    example: 2,
  },
  'X-RateLimit-Remaining': {
    description: 'Requests left in that window.',
    required: true,
    schema: count,
    example: 1,
  },
  'X-RateLimit-Reset': {
    description: 'Seconds until that window ends; 0 if nothing limits.',
    required: true,
    schema: count,
    example: 1,
  },
  'RateLimit-Policy': {
    description:
      'Every window that limits, with its quota and its length in seconds (IETF draft ratelimit-headers).',
    required: false,
    schema: { type: 'string' },
    example: '"second";q=2;w=1, "day";q=5000;w=86400',
  },
  RateLimit: {
    description:
      'For every window, the requests left and the seconds until it ends (IETF draft ratelimit-headers).',
    required: false,
    schema: { type: 'string' },
    example: '"second";r=1;t=1, "day";r=4987;t=30412',
  },
  'X-API-Version': {
    description: 'The version of this API.',
    required: true,
    schema: { type: 'string', const: '1' },
    example: '1',
  },
  'X-Request-Id': {
    description:
      'The id of this request: yours, or one that the service made. Quote it when you ask the operator.',
    required: true,
    schema: { type: 'string', minLength: 1, maxLength: 128 },
    example: '0198c9a4-6f1e-7d52-b3a4-5f0c8b1d9e27',
  },
  'X-Postern-Ignored': {
    description:
      'Members of the body and parameters of the query that the service does not know and has ignored, up to ten of each.',
    required: false,
    schema: { type: 'string' },
    example: 'reply_to, attachments.0.fileName',
  },
};

const onSomeResponses: Record<string, Header> = {
  'Retry-After': {
    description: 'Seconds to wait before the next try. Only on 429.',
    required: true,
    schema: seconds,
    example: 1,
  },
  'WWW-Authenticate': {
    description: 'The authentication scheme to use. Only on 401.',
    required: true,
    schema: { type: 'string', const: 'Bearer' },
    example: 'Bearer',
  },
  'X-Postern-Warning': {
    description: 'What may go wrong with the mail, which is accepted all the same.',
    required: false,
    schema: { type: 'string' },
    example: oneClickWarning,
  },
  'X-Postern-Held': {
    description:
      'Of a send that was accepted: the id of the pause that holds its mail (`GET /api/public/pauses`); of a batch, the ids, with commas.',
    required: false,
    schema: { type: 'string' },
    example: '0198c9a4-6f1e-7d52-b3a4-5f0c8b1d9e27',
  },
  'Idempotent-Replayed': {
    description:
      'This is the response of an earlier send that this call repeats. Nothing was sent or charged now.',
    required: false,
    schema: { type: 'string', const: 'true' },
    example: 'true',
  },
  Allow: {
    description: 'The methods that the path takes.',
    required: true,
    schema: { type: 'string' },
    example: 'HEAD, GET',
  },
};

export const headers = { ...onEveryResponse, ...onSomeResponses };

/** References to the headers of every response and to `more`. */
export function headerRefs(...more: string[]): Record<string, { $ref: string }> {
  return Object.fromEntries(
    [...Object.keys(onEveryResponse), ...more].map((name) => [name, refTo('headers', name)]),
  );
}
