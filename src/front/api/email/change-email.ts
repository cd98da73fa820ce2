/** Changes to an email that has not been sent: cancel it, or move its `scheduledAt` (docs/api.md section 4.2). */
import { z } from 'zod';
import { allowedDomains, type Caller } from '#accounts/api-keys.ts';
import { answer, byId, moment, requireFound, resource, success } from '#front/api/management.ts';
import { scheduledAt } from '#front/api/send/schema.ts';
import { noBody } from '#front/http/body-limits.ts';
import { reschedule } from '#mail/queue/rows/scheduled-mail.ts';
import { cancelEmail } from '#mail/record/rows/cancel-email.ts';
import { type EmailRecord, findEmail } from '#mail/record/rows/emails.ts';
import { expiresAtOf } from '#mail/record/telemetry.ts';
import { iso } from '#platform/base/clock.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { parseMailbox } from '#platform/values/address.ts';
import { Refusal } from '#platform/values/refusal.ts';
import { scheduledAtRefusal } from '#platform/values/send-times.ts';
import { emailIdDescription } from './routes.ts';

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

const emails = resource('Email', byId('email', findOwn, emailIdDescription), 'email:send');
const errors = {
  DOMAIN_NOT_ALLOWED: "The key's `domain_scope` does not include the sender's domain.",
  NOT_FOUND: true,
} as const;

export const changeEmailEndpoints = [
  emails.item({
    route: 'PATCH /email/{id}',
    operationId: 'moveEmail',
    summary: 'Move a scheduled email',
    description:
      'Gives a scheduled email another time. What `expiresAfter` set moves with it. An email that has started cannot be moved.',
    body: z.object({ scheduledAt }),
    response: answer('The email is moved.', movedAnswer),
    errors: {
      ...errors,
      VALIDATION_ERROR: true,
      BAD_REQUEST:
        'The id in the path is not a UUID, the body is not JSON, or the email is not scheduled any more.',
    },
    async respond({ db, found: { id: emailId }, orgId, caller, body, now }) {
      const refusal = scheduledAtRefusal(body.scheduledAt, now);
      if (refusal) throw refusal;
      const result = await reschedule(db, { emailId, orgId, at: body.scheduledAt, now });
      if (result !== 'rescheduled') throw new Refusal('BAD_REQUEST', notScheduled);
      const after = requireFound(await findOwn(db, emailId, orgId, caller), 'email');
      return { emailId, scheduledAt: iso(after.scheduledAt!), expiresAt: iso(expiresAtOf(after)) };
    },
  }),
  emails.item({
    route: 'POST /email/{id}/cancel',
    operationId: 'cancelEmail',
    summary: 'Cancel an email',
    description:
      'Cancels every recipient that the email has not been sent to, deferred ones too, and refunds those that were never ' +
      'attempted. The call has no body and can be repeated.',
    body: noBody,
    response: answer('What was canceled.', canceledAnswer),
    errors,
    async respond({ db, found, eventSignal, now }) {
      const order = { reason: 'canceled through the API', bySender: true, now };
      const canceled = requireFound(await cancelEmail(db, found, order), 'email');
      eventSignal.notify();
      return { emailId: found.id, ...canceled };
    },
  }),
];

const notScheduled = 'The email is not scheduled, or its time has come: it cannot be moved any more.';

/** The email, if the caller may send from its domain. */
async function findOwn(db: Db, id: string, orgId: string, caller: Caller): Promise<EmailRecord | null> {
  const email = await findEmail(db, id, orgId, caller);
  const domain = parseMailbox(email?.from ?? '')?.domain ?? '';
  const allowed = allowedDomains(caller);
  if (!email || allowed.length === 0 || allowed.includes(domain)) return email;
  throw new Refusal(
    'DOMAIN_NOT_ALLOWED',
    `This API key cannot change email from ${domain}. It can send from ${allowed.join(', ')}.`,
  );
}
