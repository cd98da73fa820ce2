/**
 * A refusal: the public API's way of saying no. docs/api.md section 7 is closed: no other code leaves it.
 * Whoever decides throws a Refusal; api/api-app.ts turns it into the answer. A VALIDATION_ERROR lists its issues,
 * every other code has none.
 */
export const statusOf = {
  VALIDATION_ERROR: 400,
  BAD_REQUEST: 400,
  UNAUTHORIZED: 401,
  INSUFFICIENT_CREDITS: 402,
  FORBIDDEN: 403,
  DOMAIN_NOT_ALLOWED: 403,
  DOMAIN_NOT_FOUND: 403,
  DOMAIN_NOT_VERIFIED: 403,
  NOT_FOUND: 404,
  ALL_RECIPIENTS_SUPPRESSED: 422,
  RATE_LIMIT_EXCEEDED: 429,
  SEND_FAILED: 500,
} as const;

export type RefusalCode = keyof typeof statusOf;

/** One violation of the schema; all five members are always there, all strings (path: of strings). */
export interface Issue {
  code: string;
  expected: string;
  received: string;
  path: string[];
  message: string;
}

interface Details {
  /** VALIDATION_ERROR's. */
  issues?: Issue[];
  /** RATE_LIMIT_EXCEEDED's: when to come again. */
  retryAfterMs?: number;
  /** SEND_FAILED's: for our log, never for the caller. */
  cause?: unknown;
}

export class Refusal extends Error {
  readonly code: RefusalCode;
  readonly issues: Issue[];
  readonly retryAfterMs: number | null;

  constructor(code: RefusalCode, message: string, { issues = [], retryAfterMs, cause }: Details = {}) {
    super(message, { cause });
    this.name = 'Refusal';
    this.code = code;
    this.issues = issues;
    this.retryAfterMs = retryAfterMs ?? null;
  }
}
