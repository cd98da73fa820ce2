/** GET /api/public/email/:id (docs/api.md section 4.2; the answer is docs/design.md section 3). */
import type { Middleware } from 'koa';
import type { EmailRecord } from '../../db/events/emails.ts';
import { Refusal } from '../../mail/refusal.ts';
import { telemetry } from '../../record/telemetry.ts';
import type { Authorize } from '../authorize.ts';
import type { EmailAnswer } from './schema.ts';

/** A UUID of whatever version and variant: what is well-formed and unknown is not found. */
const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export type FindEmail = (id: string, orgId: string) => Promise<EmailRecord | null>;

export function getEmail(authorize: Authorize, findEmail: FindEmail): Middleware {
  return async (context) => {
    const caller = await authorize.enter(context, 'email:read');
    const id: string = context.params.id.toLowerCase();
    if (!uuid.test(id)) throw new Refusal('BAD_REQUEST', 'The email id in the path is not a UUID.');
    const email = await findEmail(id, caller.orgId);
    if (!email) throw new Refusal('NOT_FOUND', 'There is no such email.');
    context.body = { success: true, ...telemetry(email) } satisfies Omit<EmailAnswer, 'status' | 'events'>;
  };
}
