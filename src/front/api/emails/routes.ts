/** GET /api/public/emails: an organization's emails that match a search, newest first. */

import { answer, resource } from '#front/api/management.ts';
import { type EmailSummary, searchEmails } from '#mail/record/rows/search-emails.ts';
import { iso } from '#platform/base/clock.ts';
import type { RecipientKind } from '#platform/values/glossary.ts';
import { emailsQuery, emailsSchemas } from './schema.ts';

export const emailsEndpoints = [
  resource('Email', undefined, 'email:read').collection({
    route: 'GET /emails',
    operationId: 'listEmails',
    summary: 'Search emails',
    description:
      'Your emails that match all the parameters, newest first. Give a time range if you can: a search examines every ' +
      'email in it, a limited number in one request, and `next` continues from there.',
    query: emailsQuery,
    parameters: [
      {
        name: 'tag.NAME',
        in: 'query',
        required: false,
        description: 'The value of the tag NAME. Give one such parameter for each tag.',
        schema: { type: 'string' },
      },
    ],
    response: answer('A page of emails.', emailsSchemas.Emails),
    async respond({ db, orgId, caller, query }) {
      const { emails, next } = await searchEmails(db, { orgId, onlyTest: caller.isTest, ...query });
      return { emails: emails.map(present), next };
    },
  }),
];

function present({ id, messageId, recipients, createdAt, updatedAt, ...email }: EmailSummary) {
  const addressesOf = (wanted: RecipientKind) =>
    recipients.filter(({ kind }) => kind === wanted).map(({ address }) => address);
  return {
    emailId: id,
    id: messageId,
    status: email.status,
    from: email.from,
    to: addressesOf('to'),
    cc: addressesOf('cc'),
    bcc: addressesOf('bcc'),
    subject: email.subject,
    tags: email.tags,
    ...(email.isTest && { test: true as const }),
    createdAt: iso(createdAt),
    updatedAt: iso(updatedAt),
    recipients: recipients.map(({ address, kind, status }) => ({ address, kind, status })),
  };
}
