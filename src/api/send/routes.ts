/** POST /api/public/email/send (docs/api.md section 4.1). */
import { hash } from 'node:crypto';
import type { Context, Middleware } from 'koa';
import type { Accept, SendRequest } from '../../accept.ts';
import type { Caller } from '../../accounts/api-keys.ts';
import { failpoint } from '../../base/failpoints.ts';
import type { SendAnswerRecord } from '../../db/accept/send-record.ts';
import { Refusal } from '../../mail/refusal.ts';
import type { Slot } from '../admission.ts';
import type { Authorize } from '../authorize.ts';
import type { Endpoint } from '../endpoint.ts';
import { maxIssues, toIssues } from '../issues.ts';
import { parseJson, readBody } from '../request-body.ts';
import { setBusyHeaders } from '../server-busy.ts';
import { admitSend, type SendCapacity } from './admit-send.ts';
import type { FetchAttachments } from './fetch-attachments.ts';
import { type SendFields, sendSchema, toRequest } from './schema.ts';
import { type SendAnswer, sendAnswer } from './send-response.ts';
import {
  ignoredHeader,
  ignoredNames,
  ignoredNote,
  type UnknownMember,
  unknownIssues,
  unknownMembers,
} from './unknown-members.ts';

export interface SendParts extends SendCapacity {
  authorize: Authorize;
  accept: Accept;
  fetchAttachments: FetchAttachments;
}

const maxKeyLength = 255;

export const sendEndpoints: Endpoint<SendParts>[] = [
  {
    route: 'POST /email/send',
    operationId: 'sendEmail',
    tag: 'Email',
    summary: 'Send an email',
    description:
      'Accepts one email for one to ten recipients. The response is 200 when the email is stored on disk and its credits ' +
      'are spent, one for each accepted recipient. Recipients that are suppressed, or for which there are not enough ' +
      'credits, are skipped and listed.',
    scopes: ['email:send', 'full_access'],
    headers: [ignoredHeader],
    parameters: [
      {
        name: 'Idempotency-Key',
        in: 'header',
        required: false,
        description: 'The same as `idempotencyKey` in the body, which overrides it.',
        schema: { type: 'string', minLength: 1, maxLength: maxKeyLength },
        example: 'receipt-4711',
      },
    ],
    body: { description: 'The email: at most 20 MiB.', content: { 'application/json': sendSchema } },
    response: {
      description: 'The email is accepted for all or some of its recipients.',
      headers: ['Idempotent-Replayed'],
      content: { 'application/json': sendAnswer },
    },
    errors: {
      VALIDATION_ERROR: true,
      BAD_REQUEST: true,
      UNAUTHORIZED: true,
      INSUFFICIENT_CREDITS: true,
      FORBIDDEN: true,
      DOMAIN_NOT_ALLOWED: true,
      DOMAIN_NOT_FOUND: true,
      DOMAIN_NOT_VERIFIED: true,
      ALL_RECIPIENTS_SUPPRESSED: true,
      RATE_LIMIT_EXCEEDED: true,
      SEND_FAILED: true,
    },
    handler: sendEmail,
  },
];

function sendEmail(parts: SendParts): Middleware {
  return async (context) => {
    let slot: Slot | undefined;
    try {
      const caller = await parts.authorize.enter(context, 'email:send', async ({ orgId }) => {
        slot = await admitSend(parts, orgId, 0).catch((refusal: Refusal) => {
          setBusyHeaders(context, parts.admission.maxSlots, refusal.retryAfterMs!);
          throw refusal;
        });
      });
      await send(context, caller, slot!, parts);
    } finally {
      slot?.release();
    }
  };
}

async function send(context: Context, caller: Caller, slot: Slot, parts: SendParts): Promise<void> {
  const { accept, fetchAttachments } = parts;
  const body = await parseJson(await readBody(context.req, slot));
  const unknown = unknownMembers(body);
  if (unknown.length > 0) context.set(ignoredHeader, ignoredNames(unknown));
  const fields = checkFields(body, caller.strict ? unknown : []);
  const idempotency = idempotencyOf(context.req.headers['idempotency-key'] as string | undefined, fields);
  const { requestId } = context.state;
  const request = {
    ...toRequest(fields, (files) => fetchAttachments(caller.orgId, files, slot, whenHungUp(context.res))),
    idempotency,
    requestId,
    ignored: ignoredNote(unknown),
  };
  const { answer, replayed } = await accept(request, caller);
  if (replayed) context.set('Idempotent-Replayed', 'true');
  context.body = present(answer);
  context.res.once('finish', () => failpoint('answered'));
}

/** All violations at once; `refused` are those of a strict key. */
function checkFields(body: unknown, refused: UnknownMember[]): SendFields {
  const parsed = sendSchema.safeParse(body);
  if (parsed.success && refused.length === 0) return parsed.data;
  const issues = [...(parsed.success ? [] : toIssues(parsed.error, body)), ...unknownIssues(refused)];
  throw new Refusal('VALIDATION_ERROR', 'The request is not valid.', { issues: issues.slice(0, maxIssues) });
}

/** Aborts if the client disconnects before the response is written. */
export function whenHungUp(response: Context['res']): AbortSignal {
  const hungUp = new AbortController();
  const abort = () =>
    hungUp.abort(new Refusal('BAD_REQUEST', 'The connection ended before the attachments were fetched.'));
  if (response.destroyed) abort();
  else response.once('close', abort);
  return hungUp.signal;
}

/** The key in the body overrides the one in the header. */
function idempotencyOf(
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

/** Empty lists are left out (docs/api.md section 2.4). */
function present({ id, emailId, accepted, suppressed, insufficientCredit }: SendAnswerRecord): SendAnswer {
  return {
    success: true,
    id,
    emailId,
    accepted,
    ...(suppressed.length > 0 && { suppressed }),
    ...(insufficientCredit.length > 0 && { insufficientCredit }),
  };
}
