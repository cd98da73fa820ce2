/**
 * One table of refusals: ours in the rows, and in the columns what each service answers: the status, and what its SDKs look for
 * in the body. Each dialect writes its own form around that.
 */
import { cutForJson } from '#platform/base/sanitize.ts';
import type { DialectName } from '#platform/values/glossary.ts';
import type { Refusal, RefusalCode, RefusalReason } from '#platform/values/refusal.ts';

const columns = { resend: 0, postmark: 1, sendgrid: 2, mailgun: 3 } as const satisfies Record<
  DialectName,
  number
>;

type Answers = [
  resend: [status: number, name: string] | null,
  postmark: [status: number, ErrorCode: number] | null,
  sendgrid: number | null,
  mailgun: number | null,
];

/** Null: the service accepts such a call. */
const table: Record<RefusalCode | RefusalReason, Answers> = {
  VALIDATION_ERROR: [[422, 'validation_error'], [422, 300], 400, 400],
  BAD_REQUEST: [[400, 'validation_error'], [422, 300], 400, 400],
  BODY_TOO_LARGE: [[413, 'validation_error'], [413, 300], 413, 413],
  IDEMPOTENCY_KEY_INVALID: [[400, 'invalid_idempotency_key'], [422, 300], 400, 400],
  IDEMPOTENCY_KEY_REUSED: [[409, 'invalid_idempotent_request'], [409, 300], 409, 409],
  API_KEY_MISSING: [[401, 'missing_api_key'], [401, 10], 401, 401],
  UNAUTHORIZED: [[403, 'invalid_api_key'], [401, 10], 401, 401],
  FORBIDDEN: [[401, 'restricted_api_key'], [401, 10], 403, 403],
  INSUFFICIENT_CREDITS: [[429, 'monthly_quota_exceeded'], [422, 405], 401, 402],
  DOMAIN_NOT_ALLOWED: [[403, 'validation_error'], [422, 400], 403, 403],
  DOMAIN_NOT_FOUND: [[403, 'validation_error'], [422, 400], 403, 404],
  DOMAIN_NOT_VERIFIED: [[403, 'validation_error'], [422, 401], 403, 403],
  NOT_FOUND: [[404, 'not_found'], [404, 701], 404, 404],
  ALL_RECIPIENTS_SUPPRESSED: [null, [422, 406], null, null],
  RATE_LIMIT_EXCEEDED: [[429, 'rate_limit_exceeded'], [429, 429], 429, 429],
  SEND_FAILED: [[500, 'internal_server_error'], [500, 500], 500, 500],
};

type Column<Name extends DialectName> = Answers[(typeof columns)[Name]];

export function answerTo<Name extends DialectName>(name: Name, { code, reason }: Refusal) {
  const column = columns[name];
  return (table[reason ?? code][column] ?? table.BAD_REQUEST[column]) as NonNullable<Column<Name>>;
}

/** False if the service accepts such a call. */
export function refuses(name: DialectName, code: RefusalCode): boolean {
  return table[code][columns[name]] !== null;
}

/** The messages of a batch's refusals together, in bytes of JSON. */
const maxMessages = 60_000;

/** The fields that are wrong, because most SDKs show nothing but the message. `batch`: how many emails are answered together. */
export function messageOf({ code, issues, message }: Refusal, batch = 1): string {
  // SDKs take the addresses from the sentence.
  if (code === 'ALL_RECIPIENTS_SUPPRESSED') return message;
  const text = issues.length === 0 ? message : issues.map((issue) => issue.message).join('; ');
  return cutForJson(text, Math.floor(maxMessages / batch));
}
