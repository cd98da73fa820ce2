/** Changes to an email that has not been sent: cancel it, or move its `scheduledAt` (docs/api.md section 4.2). */
import type { Context } from 'koa';
import { z } from 'zod';
import { allowedDomains, type Caller } from '../../accounts/api-keys.ts';
import { iso } from '../../base/clock.ts';
import { type EmailRecord, findEmail } from '../../db/events/emails.ts';
import { cancelEmail } from '../../db/queue/cancel-email.ts';
import { reschedule } from '../../db/queue/scheduled-mail.ts';
import { parseMailbox } from '../../mail/address.ts';
import { Refusal } from '../../mail/refusal.ts';
import { scheduledAtRefusal } from '../../mail/send-times.ts';
import { expiresAtOf } from '../../record/telemetry.ts';
import { noBody } from '../body-limits.ts';
import { type Endpoint, exampleId, jsonResponse, pathParameter, readErrors } from '../endpoint.ts';
import {
  type Management,
  type ManagementParts,
  moment,
  readJson,
  smallBody,
  success,
} from '../management.ts';
import { uuidIn } from '../query.ts';
import { scheduledAt } from '../send/schema.ts';

const emailId = z.uuid();
const addresses = z.array(z.string().meta({ format: 'idn-email' }));

const canceledAnswer = success({
  emailId,
  canceled: addresses.meta({
    description: 'Recipients to whom nothing more is sent, including those that were canceled before.',
  }),
  tooLate: addresses.meta({
    description:
      'Recipients that it was too late for: the email is being sent to them now, or their state was final. If the attempt ' +
      'under way fails, a second call can still cancel the next one.',
  }),
  credits: z.int().meta({
    description: 'What the email costs now: canceled recipients that were never attempted are refunded.',
  }),
});

const movedAnswer = success({
  emailId,
  scheduledAt: moment,
  expiresAt: moment.meta({ description: 'Moved by the same time as `scheduledAt`.' }),
});

const newTime = z.object({ scheduledAt });

const id = pathParameter('id', 'The `emailId` in the response of the send.', exampleId, 'uuid');
const common = { tag: 'Email', scopes: ['email:send' as const, 'full_access' as const], parameters: [id] };
const errors = {
  ...readErrors,
  DOMAIN_NOT_ALLOWED: "The key's `domain_scope` does not include the sender's domain.",
  NOT_FOUND: true,
} as const;

export const changeEmailEndpoints: Endpoint<ManagementParts>[] = [
  {
    ...common,
    route: 'PATCH /email/{id}',
    operationId: 'moveEmail',
    summary: 'Move a scheduled email',
    description:
      'Gives a scheduled email another time. What `expiresAfter` set moves with it. An email that has started cannot be moved.',
    body: smallBody(newTime),
    response: jsonResponse('The email is moved.', movedAnswer),
    errors: {
      ...errors,
      VALIDATION_ERROR: true,
      BAD_REQUEST:
        'The id in the path is not a UUID, the body is not JSON, or the email is not scheduled any more.',
    },
    handler: ({ management }) => move(management),
  },
  {
    ...common,
    route: 'POST /email/{id}/cancel',
    operationId: 'cancelEmail',
    summary: 'Cancel an email',
    description:
      'Cancels every recipient that the email has not been sent to, deferred ones too, and refunds those that were never ' +
      'attempted. The call has no body and can be repeated.',
    body: noBody,
    response: jsonResponse('What was canceled.', canceledAnswer),
    errors: { ...errors, BAD_REQUEST: 'The id in the path is not a UUID.' },
    handler: ({ management }) => cancel(management),
  },
];

function move(parts: Management) {
  return async (context: Context) => {
    const { db, clock } = parts;
    const caller = await parts.authorize.enter(context, 'email:send');
    const email = await ownEmail(parts, context, caller);
    const body = await readJson(context, newTime, () => parts.admission.acquire(caller.orgId));
    const now = clock.now();
    const refusal = scheduledAtRefusal(body.scheduledAt, now);
    if (refusal) throw refusal;
    const result = await reschedule(db, {
      emailId: email.id,
      orgId: caller.orgId,
      at: body.scheduledAt,
      now,
    });
    if (result !== 'rescheduled') throw new Refusal('BAD_REQUEST', notScheduled);
    const after = await ownEmail(parts, context, caller);
    context.body = {
      success: true,
      emailId: email.id,
      scheduledAt: iso(after.scheduledAt!),
      expiresAt: iso(expiresAtOf(after)),
    } satisfies z.input<typeof movedAnswer>;
  };
}

const notScheduled = 'The email is not scheduled, or its time has come: it cannot be moved any more.';

function cancel(parts: Management) {
  return async (context: Context) => {
    const { db, clock, eventSignal } = parts;
    const caller = await parts.authorize.enter(context, 'email:send');
    const email = await ownEmail(parts, context, caller);
    const reason = 'canceled through the API';
    const canceled = await cancelEmail(db, email, { reason, bySender: true, now: clock.now() });
    if (!canceled) throw new Refusal('NOT_FOUND', noSuchEmail);
    eventSignal.notify();
    context.body = { success: true, emailId: email.id, ...canceled } satisfies z.input<typeof canceledAnswer>;
  };
}

const noSuchEmail = 'There is no such email.';

/** The email of the path, if it belongs to the caller and the caller may send from its domain. */
async function ownEmail({ db }: Management, context: Context, caller: Caller): Promise<EmailRecord> {
  const name = uuidIn(context.params.id);
  if (name === null) throw new Refusal('BAD_REQUEST', 'The email id in the path is not a UUID.');
  const email = await findEmail(db, name, caller.orgId);
  if (!email) throw new Refusal('NOT_FOUND', noSuchEmail);
  const domain = parseMailbox(email.from)?.domain ?? '';
  const allowed = allowedDomains(caller);
  if (allowed.length === 0 || allowed.includes(domain)) return email;
  throw new Refusal(
    'DOMAIN_NOT_ALLOWED',
    `This API key cannot change email from ${domain}. It can send from ${allowed.join(', ')}.`,
  );
}
