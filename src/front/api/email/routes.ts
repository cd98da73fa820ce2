/** GET /api/public/email/:id: one email with everything that is known about it (docs/design.md section 3). */

import { answer, byId, resource } from '#front/api/management.ts';
import { findEmail } from '#mail/record/rows/emails.ts';
import { telemetry } from '#mail/record/telemetry.ts';
import { type EmailAnswer, emailSchemas } from './schema.ts';

export const emailIdDescription = 'The `emailId` in the response of the send.';

const emails = resource('Email', byId('email', findEmail, emailIdDescription), 'email:read');

export const emailEndpoints = [
  emails.item({
    route: 'GET /email/{id}',
    operationId: 'getEmail',
    summary: 'Show an email',
    description:
      'Everything that is known about one email of your organization: its status; each recipient with its attempts, the ' +
      'last reply and the bounce; and all events in order.',
    response: answer('The email.', emailSchemas.Email),
    errors: { NOT_FOUND: true },
    // The schema lists the types of events, each with its own data.
    respond: async ({ found }) =>
      telemetry(found) satisfies Omit<EmailAnswer, 'success' | 'status' | 'events'> as EmailAnswer,
  }),
];
