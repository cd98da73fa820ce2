/** Checks the parsed body of a send, alone or in a batch, and converts it to the request that accept.ts takes. */
import { hash } from 'node:crypto';
import type { Caller } from '#accounts/api-keys.ts';
import { withoutNulls } from '#front/http/absent-members.ts';
import { maxIssues, toIssues } from '#front/http/issues.ts';
import type { SendRequest } from '#mail/accept/requested-send.ts';
import { lackingHeader } from '#platform/values/one-click.ts';
import { Refusal } from '#platform/values/refusal.ts';
import type { ReplyRequest } from './in-reply-to.ts';
import { type SendFields, sendSchema, toRequest } from './schema.ts';
import {
  ignoredNote,
  type UnknownMember,
  unknownIssues,
  unknownMembers,
  withUnknown,
} from './unknown-members.ts';

export const maxKeyLength = 255;

export type FetchAll = Parameters<typeof toRequest>[1];

interface Origin {
  /** Fetches attachments that are at URLs. */
  fetchAll: FetchAll;
  caller: Caller;
  requestId: string;
  /** The header, for a send alone. */
  idempotencyKey?: string | undefined;
}

/** `onUnknown` gets the members that the schema does not know, if there are any. */
export function checkSend(
  given: unknown,
  { caller, requestId, idempotencyKey, fetchAll }: Origin,
  onUnknown: (unknown: UnknownMember[]) => void,
): ReplyRequest {
  const unknown = unknownMembers(given);
  const body = withoutNulls(sendSchema, given);
  if (unknown.length > 0) onUnknown(unknown);
  const lacksSubject = isReplyWithoutSubject(body);
  const fields = checkFields(lacksSubject ? { ...body, subject: 'Re:' } : body, unknown, caller.strict);
  const idempotency = idempotencyOfBody(idempotencyKey, fields);
  const request = toRequest(fields, fetchAll);
  const lacking = lackingHeader(request.headers);
  return { ...request, lacksSubject, idempotency, requestId, ignored: ignoredNote(unknown), lacking };
}

/** An answer to a received mail has the subject of that. */
function isReplyWithoutSubject(body: unknown): body is object {
  const isObject = typeof body === 'object' && body !== null && !Array.isArray(body);
  return isObject && 'inReplyTo' in body && !('subject' in body);
}

/** All violations at once; unknown members are violations if the key is strict. */
function checkFields(body: unknown, unknown: UnknownMember[], isStrict: boolean): SendFields {
  const parsed = sendSchema.safeParse(body);
  const refused = isStrict ? unknown : [];
  if (parsed.success && refused.length === 0) return parsed.data;
  const violations = parsed.success ? [] : withUnknown(toIssues(parsed.error, body), unknown);
  const issues = [...violations, ...unknownIssues(refused)];
  throw new Refusal('VALIDATION_ERROR', 'The request is not valid.', { issues: issues.slice(0, maxIssues) });
}

/** The key in the body overrides the one in the header. */
function idempotencyOfBody(
  header: string | undefined,
  { idempotencyKey: inBody, ...fields }: SendFields,
): SendRequest['idempotency'] {
  if (inBody === undefined && header !== undefined && (header === '' || header.length > maxKeyLength)) {
    throw new Refusal('BAD_REQUEST', `Idempotency-Key must have 1 to ${maxKeyLength} characters.`);
  }
  const key = inBody ?? header;
  return key === undefined ? null : { key, requestHash: hash('sha256', canonical(fields)) };
}

/** The parsed fields are in the order of the schema, so the order of members in the body does not matter. */
function canonical({ attachments, headers, tags, ...fields }: Omit<SendFields, 'idempotencyKey'>): string {
  const files = attachments?.map((file) => ({
    ...file,
    content: file.content && hash('sha256', file.content),
  }));
  return JSON.stringify([fields, files, sorted(headers), sorted(tags)]);
}

function sorted(pairs: Record<string, string> = {}): [string, string][] {
  return Object.entries(pairs).sort(([a], [b]) => (a < b ? -1 : 1));
}
