/** POST /api/public/email/send (interface.md section 4.1). */
import { hash } from 'node:crypto';
import type { Context, Middleware } from 'koa';
import type { Accept, SendRequest } from '../../accept.ts';
import type { Caller } from '../../accounts/keys.ts';
import type { Answer } from '../../db/idempotency.ts';
import { Refusal } from '../../refusal.ts';
import { reach } from '../../steps.ts';
import { likelySize, parseJson, readBody } from '../body.ts';
import { refuseMore } from '../busy.ts';
import type { Gate } from '../gate.ts';
import { toIssues } from '../issues.ts';
import type { Place, Room } from '../room.ts';
import type { SendAnswer } from './answer.ts';
import { sendSchema, toRequest } from './schema.ts';

export interface SendParts {
  gate: Gate;
  room: Room;
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
    let place: Place | undefined;
    try {
      const caller = await parts.gate.enter(context, 'email:send', async ({ orgId }) => {
        place = await placeFor(context, orgId, parts);
      });
      await send(context, caller, place!, parts.accept);
    } finally {
      place?.leave();
    }
  };
}

async function placeFor(context: Context, orgId: string, { room, hasSpace }: SendParts): Promise<Place> {
  if (!hasSpace()) return refuseMore(context, room.places, fullMs);
  return (await room.enter(orgId, likelySize(context.req))) ?? refuseMore(context, room.places, busyMs);
}

async function send(context: Context, caller: Caller, place: Place, accept: Accept): Promise<void> {
  const bytes = await readBody(context.req);
  place.resize(bytes.length);
  const body = parseJson(bytes);
  const parsed = sendSchema.safeParse(body);
  if (!parsed.success) {
    throw new Refusal('VALIDATION_ERROR', 'The request is not valid.', {
      issues: toIssues(parsed.error, body),
    });
  }
  const idempotency = idempotencyOf(
    context.req.headers['idempotency-key'] as string | undefined,
    parsed.data.idempotencyKey,
    body,
  );
  const { requestId } = context.state;
  const request = { ...toRequest(parsed.data), idempotency, requestId };
  const { answer, replayed } = await accept(request, caller);
  if (replayed) context.set('Idempotent-Replayed', 'true');
  context.body = present(answer);
  context.res.once('finish', () => reach('answered'));
}

/** The body's key, or the header's where the body has none. */
function idempotencyOf(
  header: string | undefined,
  inBody: string | undefined,
  body: unknown,
): SendRequest['idempotency'] {
  if (inBody === undefined && header !== undefined && (header === '' || header.length > longestKey)) {
    throw new Refusal('BAD_REQUEST', `Idempotency-Key must have 1 to ${longestKey} characters.`);
  }
  const key = inBody ?? header;
  if (key === undefined) return null;
  const { idempotencyKey: _, ...request } = body as Record<string, unknown>;
  return { key, requestHash: hash('sha256', canonical(request)) };
}

/** As parsed: the order of members does not matter. Unknown ones count too, and may be nested beyond the stack. */
function canonical(value: unknown): string {
  try {
    return JSON.stringify(value, (_, member) => {
      if (typeof member !== 'object' || member === null || Array.isArray(member)) return member;
      return Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)));
    });
  } catch {
    throw new Refusal('BAD_REQUEST', 'The body is nested too deeply.');
  }
}

/** A full success carries no other lists (interface.md section 2.4). */
function present({ id, emailId, accepted, suppressed, insufficientCredit }: Answer): SendAnswer {
  return {
    success: true,
    id,
    emailId,
    accepted,
    ...(suppressed.length > 0 && { suppressed }),
    ...(insufficientCredit.length > 0 && { insufficientCredit }),
  };
}
