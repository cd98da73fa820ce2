/** The headers of every answer and of some (docs/api.md section 8, docs/design.md section 2), as components. */
import { type ComponentSchema, refTo } from './component-schemas.ts';

export interface Header {
  description: string;
  /** Whether an answer that has it listed always has it. */
  required: boolean;
  schema: ComponentSchema;
  example: string | number;
}

const count = { type: 'integer', minimum: 0 } as const;
const seconds = { type: 'integer', minimum: 1 } as const;

const onEvery: Record<string, Header> = {
  'X-RateLimit-Limit': {
    description:
      "Requests that the window which binds allows: the second's, unless the day's has fewer left. On 401 the window is " +
      'of failed keys from one address. 2147483647 where nothing limits.',
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
    description: 'Seconds until that window ends; 0 where nothing limits.',
    required: true,
    schema: count,
    example: 1,
  },
  'RateLimit-Policy': {
    description: 'Every window that limits, with its quota and its length in seconds, as the IETF drafts it.',
    required: false,
    schema: { type: 'string' },
    example: '"second";q=2;w=1, "day";q=5000;w=86400',
  },
  RateLimit: {
    description: 'What is left of every window, and seconds until it ends, as the IETF drafts it.',
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
    description: 'The id of this request: yours, or one made for it. Name it when you ask the operator.',
    required: true,
    schema: { type: 'string', minLength: 1, maxLength: 128 },
    example: '0198c9a4-6f1e-7d52-b3a4-5f0c8b1d9e27',
  },
};

const onSome: Record<string, Header> = {
  'Retry-After': {
    description: 'Seconds to wait before the next try. On 429 alone.',
    required: true,
    schema: seconds,
    example: 1,
  },
  'WWW-Authenticate': {
    description: 'How to say who you are. On 401 alone.',
    required: true,
    schema: { type: 'string', const: 'Bearer' },
    example: 'Bearer',
  },
  'Idempotent-Replayed': {
    description:
      'This is the answer of an earlier send, which this one repeats: nothing was sent or charged now.',
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

export const headers = { ...onEvery, ...onSome };

/** Those of every answer, and the ones named. */
export function headerRefs(...more: string[]): Record<string, { $ref: string }> {
  return Object.fromEntries([...Object.keys(onEvery), ...more].map((name) => [name, refTo('headers', name)]));
}
