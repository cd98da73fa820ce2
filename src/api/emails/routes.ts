/** GET /api/public/emails: an organization's emails that match a search, newest first. */
import type { Middleware } from 'koa';
import { iso } from '../../base/clock.ts';
import type { EmailSummary, Search, SearchPage } from '../../db/events/search-emails.ts';
import type { RecipientKind } from '../../glossary.ts';
import type { Authorize } from '../authorize.ts';
import { type Endpoint, invalidQuery, jsonResponse, readErrors } from '../endpoint.ts';
import { readQuery } from '../query.ts';
import { type EmailsAnswer, emailsQuery, emailsSchemas } from './schema.ts';

export interface SearchEmailsParts {
  authorize: Authorize;
  searchEmails(search: Search): Promise<SearchPage>;
}

export const emailsEndpoints: Endpoint<SearchEmailsParts>[] = [
  {
    route: 'GET /emails',
    operationId: 'listEmails',
    tag: 'Email',
    summary: 'Search emails',
    description:
      'Your emails that match all the parameters, newest first. Give a time range if you can: a search examines every ' +
      'email in it, a limited number in one request, and `next` continues from there.',
    scopes: ['email:read', 'full_access'],
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
    response: jsonResponse('A page of emails.', emailsSchemas.Emails),
    errors: { VALIDATION_ERROR: invalidQuery, ...readErrors },
    handler: getEmails,
  },
];

function getEmails({ authorize, searchEmails }: SearchEmailsParts): Middleware {
  return async (context) => {
    const { orgId } = await authorize.enter(context, 'email:read');
    const { emails, next } = await searchEmails({ orgId, ...readQuery(context, emailsQuery) });
    context.body = { success: true, emails: emails.map(present), next } satisfies EmailsAnswer;
  };
}

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
    recipients,
  };
}
