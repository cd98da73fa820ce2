/** GET /api/public/email/:id: one email with everything that is known about it (docs/design.md section 3). */
import type { Middleware } from 'koa';
import type { EmailRecord } from '../../db/events/emails.ts';
import { Refusal } from '../../mail/refusal.ts';
import { telemetry } from '../../record/telemetry.ts';
import type { Authorize } from '../authorize.ts';
import { type Endpoint, exampleId, jsonResponse, pathParameter, readErrors } from '../endpoint.ts';
import { uuidIn } from '../query.ts';
import { type EmailAnswer, emailSchemas } from './schema.ts';

export interface FindEmailParts {
  authorize: Authorize;
  findEmail(id: string, orgId: string): Promise<EmailRecord | null>;
}

export const emailEndpoints: Endpoint<FindEmailParts>[] = [
  {
    route: 'GET /email/{id}',
    operationId: 'getEmail',
    tag: 'Email',
    summary: 'Show an email',
    description:
      'Everything that is known about one email of your organization: its status; each recipient with its attempts, the ' +
      'last reply and the bounce; and all events in order.',
    scopes: ['email:read', 'full_access'],
    parameters: [pathParameter('id', 'The `emailId` in the response of the send.', exampleId, 'uuid')],
    response: jsonResponse('The email.', emailSchemas.Email),
    errors: {
      ...readErrors,
      BAD_REQUEST: 'The id in the path is not a UUID.',
      NOT_FOUND: true,
    },
    handler: getEmail,
  },
];

function getEmail({ authorize, findEmail }: FindEmailParts): Middleware {
  return async (context) => {
    const caller = await authorize.enter(context, 'email:read');
    const id = uuidIn(context.params.id);
    if (id === null) throw new Refusal('BAD_REQUEST', 'The email id in the path is not a UUID.');
    const email = await findEmail(id, caller.orgId);
    if (!email) throw new Refusal('NOT_FOUND', 'There is no such email.');
    context.body = { success: true, ...telemetry(email) } satisfies Omit<EmailAnswer, 'status' | 'events'>;
  };
}
