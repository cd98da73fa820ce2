/** GET /api/public/emails: an organization's emails by what they are, the newest first. */
import type { Middleware } from 'koa';
import { iso } from '../../base/clock.ts';
import type { EmailSummary, Search, SearchPage } from '../../db/events/search-emails.ts';
import type { Authorize } from '../authorize.ts';
import { readQuery } from '../query.ts';
import { type EmailsAnswer, emailsQuery } from './schema.ts';

export type SearchEmails = (search: Search) => Promise<SearchPage>;

export function getEmails(authorize: Authorize, searchEmails: SearchEmails): Middleware {
  return async (context) => {
    const { orgId } = await authorize.enter(context, 'email:read');
    const { emails, next } = await searchEmails({ orgId, ...readQuery(context, emailsQuery) });
    context.body = { success: true, emails: emails.map(present), next } satisfies EmailsAnswer;
  };
}

function present({ id, messageId, to, createdAt, updatedAt, ...email }: EmailSummary) {
  return {
    emailId: id,
    id: messageId,
    status: email.status,
    from: email.from,
    to: to.map(({ address }) => address),
    subject: email.subject,
    tags: email.tags,
    createdAt: iso(createdAt),
    updatedAt: iso(updatedAt),
    recipients: to,
  };
}
