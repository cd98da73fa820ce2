/**
 * An error response of the public API. The code that refuses a request throws a Refusal; front/api/api-app.ts turns it into the
 * response. The codes are those of docs/api.md section 7 and no others. Only a VALIDATION_ERROR has issues.
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

/** Reasons that some services tell apart although our codes do not (front/dialects/refusals.ts). */
export type RefusalReason =
  | 'API_KEY_MISSING'
  | 'BODY_TOO_LARGE'
  | 'IDEMPOTENCY_KEY_INVALID'
  | 'IDEMPOTENCY_KEY_REUSED';

/** One violation of the schema. All five members are always present; all are strings, `path` is an array of strings. */
export interface Issue {
  code: string;
  expected: string;
  received: string;
  path: string[];
  message: string;
}

interface Details {
  /** Set for VALIDATION_ERROR. */
  issues?: Issue[];
  reason?: RefusalReason;
  /** Set for RATE_LIMIT_EXCEEDED: the time until a retry makes sense. */
  retryAfterMs?: number;
  /** Set for SEND_FAILED: logged, never sent to the caller. */
  cause?: unknown;
}

/** Loggers and SDKs show nothing but the message, so it ends with the first issue. */
function withFirstIssue(message: string, issues: Issue[]): string {
  const [first] = issues;
  if (!first || message.includes(first.message)) return message;
  const others = issues.length - 1;
  const more = others === 0 ? '' : ` (and ${others} more ${others === 1 ? 'issue' : 'issues'})`;
  const end = /[.?]$/.test(first.message) ? '' : '.';
  return `${message} ${first.message}${end}${more}`;
}

export class Refusal extends Error {
  readonly code: RefusalCode;
  readonly issues: Issue[];
  readonly retryAfterMs: number | null;
  readonly reason: RefusalReason | null;
  /** The element of a batch that is the reason. */
  index: number | null = null;
  /** Addresses of the refused send, for the mail log; empty if its request is at hand where the refusal is logged. */
  recipients: readonly string[] = [];

  constructor(
    code: RefusalCode,
    message: string,
    { issues = [], retryAfterMs, reason, cause }: Details = {},
  ) {
    super(withFirstIssue(message, issues), { cause });
    this.name = 'Refusal';
    this.code = code;
    this.issues = issues;
    this.retryAfterMs = retryAfterMs ?? null;
    this.reason = reason ?? null;
  }
}

/** The error body of docs/api.md section 2.5. */
export function errorBody({ code, message, issues }: Refusal) {
  return { error: code, message, issues };
}

/** The answer to a send that failed: an error of our own is a SEND_FAILED. */
export function asRefusal(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  const message = 'The service failed to accept the email. Nothing was charged. Try again.';
  return new Refusal('SEND_FAILED', message, { cause: error });
}
