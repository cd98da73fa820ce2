/** POST /api/public/email/send (docs/api.md section 4.1). */
import type { Context, Middleware } from 'koa';
import type { Caller } from '#accounts/api-keys.ts';
import type { Endpoint, EndpointErrors } from '#front/api/endpoint.ts';
import type { Authorize } from '#front/http/authorize.ts';
import { nameIgnored } from '#front/http/ignored.ts';
import { parseJson, readBody } from '#front/http/request-body.ts';
import { setBusyHeaders } from '#front/http/server-busy.ts';
import type { Accept, DryRun } from '#mail/accept/accept.ts';
import { failpoint } from '#platform/base/failpoints.ts';
import type { ByteHold } from '#platform/base/limits/byte-budget.ts';
import type { Refusal } from '#platform/values/refusal.ts';
import { admitSend, type SendCapacity } from './admit-send.ts';
import { checkSend, maxKeyLength } from './check-send.ts';
import { isDryRun, presentDryRun, sendQuery, sendResult } from './dry-run.ts';
import type { FetchAttachments } from './fetch-attachments.ts';
import { fetcherOf } from './fetcher.ts';
import { nameHeld } from './held-header.ts';
import { asReply, type FindReceived } from './in-reply-to.ts';
import { sendSchema } from './schema.ts';
import { sendBody } from './send-body.ts';
import { presentSend } from './send-response.ts';
import { ignoredNames } from './unknown-members.ts';
import { warnOfBulk } from './warning.ts';

export interface SendParts extends SendCapacity {
  authorize: Authorize;
  accept: Accept;
  dryRun: DryRun;
  fetchAttachments: FetchAttachments;
  /** The received mail that a send answers. */
  findReceived: FindReceived;
}

export const sendErrors: EndpointErrors = {
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
};

export const sendEndpoints: Endpoint<SendParts>[] = [
  {
    route: 'POST /email/send',
    operationId: 'sendEmail',
    tag: 'Email',
    summary: 'Send an email',
    description:
      'Accepts one email for one to ten recipients. The response is 200 when the email is stored on disk and its credits ' +
      'are spent, one for each accepted recipient. Recipients that are suppressed, or for which there are not enough ' +
      'credits, are skipped and listed. With `dryRun=true`, the response says what a send would do now, and nothing is sent.',
    scopes: ['email:send', 'full_access'],
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
    query: sendQuery,
    body: {
      description: 'The email: at most 20 MiB.',
      content: { 'application/json': sendSchema },
      limits: sendBody,
    },
    response: {
      description:
        'The email is accepted for all or some of its recipients, or, with `dryRun=true`, would be.',
      headers: ['Idempotent-Replayed', 'X-Postern-Warning', 'X-Postern-Held'],
      content: { 'application/json': sendResult },
    },
    errors: sendErrors,
    handler: sendEmail,
  },
];

function sendEmail(parts: SendParts): Middleware {
  return withSendSlot(parts, async (context, caller, slot) => {
    const dryRun = isDryRun(context);
    const body = await parseJson(await readBody(context.req, slot, sendBody));
    context.state.sent = body;
    const { requestId } = context.state;
    const idempotencyKey = context.req.headers['idempotency-key'] as string | undefined;
    const fetchAll = fetcherOf(parts, context, caller, slot);
    const checked = checkSend(body, { caller, requestId, idempotencyKey, fetchAll }, (unknown) =>
      nameIgnored(context, ignoredNames(unknown)),
    );
    const reply = await asReply(parts.findReceived, checked, caller);
    const request = { ...reply, onLacksOneClick: () => warnOfBulk(context) };
    const tried = dryRun ? await parts.dryRun(request, caller) : null;
    const decided = tried ?? (await parts.accept(request, caller));
    if (decided.replayed) context.set('Idempotent-Replayed', 'true');
    nameHeld(context, [decided]);
    context.body = tried ? presentDryRun(tried.answer, tried.message) : presentSend(decided.answer);
    context.res.once('finish', () => failpoint('answered'));
  });
}

/** Authorizes a call that sends, and holds a slot until it is answered. */
export function withSendSlot(
  parts: SendCapacity & Pick<SendParts, 'authorize'>,
  handle: (context: Context, caller: Caller, slot: ByteHold) => Promise<void>,
): Middleware {
  return async (context) => {
    let slot: ByteHold | undefined;
    try {
      const caller = await parts.authorize.enter(context, 'email:send', async ({ orgId }) => {
        slot = await admitSend(parts, orgId, 0).catch((refusal: Refusal) => {
          setBusyHeaders(context, parts.admission.maxSlots, refusal.retryAfterMs!);
          throw refusal;
        });
      });
      await handle(context, caller, slot!);
    } finally {
      slot?.release();
    }
  };
}
