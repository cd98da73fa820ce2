/** POST /api/public/email/send (docs/api.md section 4.1). */
import { hash } from 'node:crypto';
import type { Context, Middleware } from 'koa';
import type { Accept, SendRequest } from '../../accept.ts';
import type { Caller } from '../../accounts/api-keys.ts';
import { failpoint } from '../../base/failpoints.ts';
import type { SendAnswerRecord } from '../../db/accept/idempotency.ts';
import { Refusal } from '../../mail/refusal.ts';
import type { Admission, Slot } from '../admission.ts';
import type { Authorize } from '../authorize.ts';
import { toIssues } from '../issues.ts';
import { parseJson, readBody } from '../request-body.ts';
import { refuseWhileBusy } from '../server-busy.ts';
import { type SendFields, sendSchema, toRequest } from './schema.ts';
import type { SendAnswer } from './send-response.ts';

export interface SendParts {
  authorize: Authorize;
  admission: Admission;
  /** Whether the disk has space for new mail. */
  hasSpace(): boolean;
  accept: Accept;
}

const longestKey = 255;

/** A place comes free soon; a disk is made room on by somebody. */
const busyMs = 1_000;
const fullMs = 30_000;

export function sendEmail(parts: SendParts): Middleware {
  return async (context) => {
    let slot: Slot | undefined;
    try {
      const caller = await parts.authorize.enter(context, 'email:send', async ({ orgId }) => {
        slot = await acquireSlot(context, orgId, parts);
      });
      await send(context, caller, slot!, parts.accept);
    } finally {
      slot?.release();
    }
  };
}

async function acquireSlot(
  context: Context,
  orgId: string,
  { admission, hasSpace }: SendParts,
): Promise<Slot> {
  if (!hasSpace()) return refuseWhileBusy(context, admission.maxSlots, fullMs);
  return (await admission.acquire(orgId, 0)) ?? refuseWhileBusy(context, admission.maxSlots, busyMs);
}

async function send(context: Context, caller: Caller, slot: Slot, accept: Accept): Promise<void> {
  const body = await parseJson(await readBody(context.req, slot));
  const parsed = sendSchema.safeParse(body);
  if (!parsed.success) {
    throw new Refusal('VALIDATION_ERROR', 'The request is not valid.', {
      issues: toIssues(parsed.error, body),
    });
  }
  const idempotency = idempotencyOf(
    context.req.headers['idempotency-key'] as string | undefined,
    parsed.data,
  );
  const { requestId } = context.state;
  const request = { ...toRequest(parsed.data), idempotency, requestId };
  const { answer, replayed } = await accept(request, caller);
  if (replayed) context.set('Idempotent-Replayed', 'true');
  context.body = present(answer);
  context.res.once('finish', () => failpoint('answered'));
}

/** The body's key, or the header's where the body has none. */
function idempotencyOf(
  header: string | undefined,
  { idempotencyKey: inBody, ...fields }: SendFields,
): SendRequest['idempotency'] {
  if (inBody === undefined && header !== undefined && (header === '' || header.length > longestKey)) {
    throw new Refusal('BAD_REQUEST', `Idempotency-Key must have 1 to ${longestKey} characters.`);
  }
  const key = inBody ?? header;
  return key === undefined ? null : { key, requestHash: hash('sha256', canonical(fields)) };
}

/** As parsed: the known fields in the order of the schema, so the order of members does not matter. */
function canonical({ attachments, headers, tags, ...fields }: Omit<SendFields, 'idempotencyKey'>): string {
  const files = attachments?.map((file) => ({ ...file, content: hash('sha256', file.content) }));
  return JSON.stringify([fields, files, sorted(headers), sorted(tags)]);
}

function sorted(pairs: Record<string, string> = {}): [string, string][] {
  return Object.entries(pairs).sort(([a], [b]) => (a < b ? -1 : 1));
}

/** A full success carries no other lists (docs/api.md section 2.4). */
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
