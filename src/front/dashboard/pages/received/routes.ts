/**
 * Received mail: a search of a bounded number of mails for each request, and the page of one mail. Strangers have written all of
 * it: texts are made legible, HTML is shown in the sandboxed frame of emails.
 */
import { itemIn } from '#front/dashboard/form-page.ts';
import { legible } from '#front/dashboard/legible.ts';
import {
  type DashboardPage,
  type OrgVisit,
  type PageAnswer,
  type PageParts,
  show,
} from '#front/dashboard/page.ts';
import { notFound } from '#front/dashboard/page-error.ts';
import { showAttachment, showPreview, showSource } from '#front/dashboard/pages/email/show-message.ts';
import { shownSource } from '#front/dashboard/pages/email/shown-email.ts';
import { addressOf, readFilters, searchOf, spans } from '#front/dashboard/pages/emails/filters.ts';
import { CallSlots } from '#front/http/server-busy.ts';
import type { ReceivedMail } from '#mail/received/received-mail.ts';
import { findReceived, rawOf } from '#mail/received/rows/received-mails.ts';
import { findRoute } from '#mail/received/rows/receiving-routes.ts';
import { searchReceived } from '#mail/received/rows/search-received.ts';
import { timeOfId } from '#platform/database/tables/time-of-id.ts';
import { verdictBadges } from './verdict-badges.ts';

/** Mails in memory at once for an organization's pages, until they have been sent; each may be 25 MiB. */
const slots = new CallSlots({ ofOne: 3 });

const pageSize = 50;
const maxListed = 50;

type OnMail = (visit: OrgVisit, parts: PageParts, mail: ReceivedMail) => PageAnswer | Promise<PageAnswer>;

const onMail = (act: OnMail) => async (visit: OrgVisit, parts: PageParts) =>
  act(visit, parts, await itemIn(visit, 'received mail', (id, orgId) => findReceived(parts.db, orgId, id)));

export const receivedPage: DashboardPage = {
  organization: {
    'GET /dashboard/o/:org/received': list,
    'GET /dashboard/o/:org/received/:id': onMail(page),
    'GET /dashboard/o/:org/received/:id/preview': onMail(async (visit, parts, mail) =>
      showPreview(visit, parts, await rawFor(visit, parts, mail)),
    ),
    'GET /dashboard/o/:org/received/:id/source': onMail(async (visit, parts, mail) =>
      showSource(await rawFor(visit, parts, mail), mail.id),
    ),
    'GET /dashboard/o/:org/received/:id/attachments/:at': onMail(async (visit, parts, mail) =>
      showAttachment(visit, parts, await rawFor(visit, parts, mail)),
    ),
  },
};

async function rawFor({ context, org }: OrgVisit, { db }: PageParts, { id }: ReceivedMail) {
  slots.takeUntilSent(context, org.id);
  return rawOf(db, org.id, id);
}

const isId = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

async function list({ query, org, now, base }: OrgVisit, { db, config }: PageParts): Promise<PageAnswer> {
  const filters = readFilters(query);
  const { to, from, subject, within, since, until } = filters;
  const values = { to, from, subject, within, since, until };
  const after = query.get('after') ?? undefined;
  if (after !== undefined && !isId.test(after)) throw notFound();
  const { since: begin, until: end } = searchOf(filters, now);
  const { mails, next } = await searchReceived(db, {
    orgId: org.id,
    to: to || undefined,
    from: from || undefined,
    subject: subject || undefined,
    since: begin,
    until: end,
    after: after?.toLowerCase(),
    limit: pageSize,
  });
  const path = `${base}/received`;
  return show('received/received', 'Received mail', {
    rows: mails.map(present),
    path,
    values,
    spans,
    keep: config.keepReceived,
    isFiltered: Object.values(values).some((value) => value !== ''),
    isFirst: after === undefined,
    older: next === null ? null : addressOf(path, filters, { after: next }),
    /** Null: the search has come to its end. */
    lookedTo: next === null || mails.length === pageSize ? null : timeOfId(next),
  });
}

function present(mail: ReceivedMail) {
  const { id, at, recipients, sender, fromHeader, subject, summary } = mail;
  return {
    id,
    at,
    to: legible(recipients[0] ?? ''),
    others: recipients.length - 1,
    from: legible(fromHeader || sender || '<>'),
    subject: legible(subject || '(no subject)'),
    preview: legible(summary.preview),
    attachments: summary.attachments.length,
    badges: verdictBadges(summary).filter(({ tone }) => tone === 'bad'),
  };
}

async function page(visit: OrgVisit, parts: PageParts, mail: ReceivedMail): Promise<PageAnswer> {
  const { query, org, base } = visit;
  const raw = await rawFor(visit, parts, mail);
  const content = raw && ((await parts.reading.shown(org.id, raw, query.get('show'))) ?? shownSource(raw));
  const route = await findRoute(parts.db, mail.routeId, org.id);
  const { id, at, sender, peer, helo, messageId, inReplyTo, summary, recipients } = mail;
  const data = {
    ...present(mail),
    id,
    at,
    content,
    path: `${base}/received/${id}`,
    badges: verdictBadges(summary),
    recipients: recipients.slice(0, maxListed).map(legible),
    more: Math.max(recipients.length - maxListed, 0),
    sender: legible(sender || '<>'),
    peer,
    helo: legible(helo),
    messageId: messageId === null ? null : legible(messageId),
    inReplyTo,
    tls: summary.tls,
    isAutomatic: summary.isAutomatic,
    pattern: route?.pattern ?? null,
    expiresAt: at + parts.config.keepReceived,
    copies: [],
    images: query.get('images') === '1',
    isNarrow: query.get('width') === 'phone',
  };
  return show('received/mail', data.subject, data);
}
