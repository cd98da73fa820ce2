/** The queue by destination, live, and one destination with its mail. The actions are in the files beside this one. */
import { z } from 'zod';
import { organizationNames } from '#accounts/rows/memberships.ts';
import { type Errors, valuesOf } from '#front/dashboard/forms.ts';
import {
  type DashboardPage,
  fragment,
  type PageAnswer,
  type PageParts,
  show,
  type UserVisit,
} from '#front/dashboard/page.ts';
import { notFound } from '#front/dashboard/page-error.ts';
import { addressOf } from '#front/dashboard/pages/emails/filters.ts';
import { pageOf } from '#front/dashboard/pagination.ts';
import { replyText } from '#mail/deliver/outcome.ts';
import { listQueue, type QueueEntry } from '#mail/queue/rows/queue-view.ts';
import { isKnownDestination, readDestinationStatuses } from '#mail/record/rows/destination-status-rows.ts';
import { idleRow, type QueueRow } from '#operate/explain/queue-rows-by-destination.ts';
import { readAddressWarmUps } from '#operate/status/warm-ups.ts';
import { type DeliveryStatus, serverOrgId } from '#platform/values/glossary.ts';
import { readDestination } from '#platform/values/host-name.ts';
import { factsOf, matching, nextAttempt, presentRow, presentRows } from './queue-rows.ts';

export const queuePage: DashboardPage = {
  operator: {
    'GET /dashboard/queue': (visit, parts) => overview(visit, parts),
    'GET /dashboard/queue/to/:destination': destination,
  },
};

/** The page shows this many rows; others are found by searching. */
const maxRows = 100;

export async function overview(
  visit: UserVisit,
  { operatorJobs, db, config }: PageParts,
  errors: Errors = {},
): Promise<PageAnswer> {
  const { now, query, context } = visit;
  const filters = { q: (query.get('q') ?? '').trim(), state: query.get('state') ?? '' };
  const all = await operatorJobs.summary();
  const found = matching(all, filters);
  const data = {
    rows: presentRows(found.slice(0, maxRows), now),
    more: Math.max(found.length - maxRows, 0),
    facts: factsOf(all).map(([name, figure, state]) => ({
      name,
      figure,
      state,
      tone: state === 'blocked' && figure > 0 ? 'bad' : '',
      href: addressOf('/dashboard/queue', filters, { state }),
    })),
    filters,
    self: addressOf('/dashboard/queue', filters),
    action: operatorJobs.queueActions.last(),
  };
  if (isPoll(visit)) return fragment('queue/summary', data);
  const values = context.method === 'POST' ? valuesOf(visit.form) : {};
  const warmUps = await readAddressWarmUps(db, config, now);
  return show('queue/queue', 'Queue', { ...data, values, errors, warmUps });
}

const statuses = ['queued', 'deferred', 'sending', 'held', 'scheduled'] as const;
const pageSize = 50;

async function destination(visit: UserVisit, parts: PageParts): Promise<PageAnswer> {
  const { now, query } = visit;
  const name = readDestination((visit.context.params as { destination: string }).destination);
  const row = name === null ? null : await rowOf(name, visit, parts);
  if (name === null || row === null) throw notFound('destination');
  const view = presentRow(row, now);
  if (isPoll(visit)) return fragment('queue/destination-status', { row: view });
  const status = z.enum(statuses).safeParse(query.get('status')).data;
  const mail = await pageOf(visit, pageSize, (page) =>
    listQueue(parts.db, { destination: name, ...(status && { status }), ...page }, now),
  );
  const rows = await presentMail(mail.rows, parts, now);
  return show('queue/destination', name, { ...mail, rows, row: view, status: status ?? '', statuses });
}

async function rowOf(
  name: string,
  { now }: UserVisit,
  { db, operatorJobs }: PageParts,
): Promise<QueueRow | null> {
  const known = (await operatorJobs.summary()).find(
    ({ destination: one, domains }) => one === name || domains.includes(name),
  );
  if (known) return known;
  return (await isKnownDestination(db, name))
    ? idleRow(name, await readDestinationStatuses(db, now), now)
    : null;
}

interface MailView extends Omit<QueueEntry, 'lastReply'> {
  status: DeliveryStatus;
  organization: string;
  lastReply: string | null;
  /** Null for mail of this server, which has no page. */
  href: string | null;
  next: string | null;
}

export async function presentMail(
  entries: QueueEntry[],
  { db }: Pick<PageParts, 'db'>,
  now: number,
): Promise<MailView[]> {
  const names = await organizationNames(
    db,
    entries.map(({ orgId }) => orgId),
  );
  return entries.map((entry) => ({
    ...entry,
    organization: names.get(entry.orgId) ?? '',
    lastReply: entry.lastReply && replyText(entry.lastReply),
    href: entry.orgId === serverOrgId ? null : `/dashboard/o/${entry.orgId}/emails/${entry.emailId}`,
    next: nextAttempt(entry.nextAttemptAt, now),
  }));
}

/** htmx requests the live part of a page again. */
function isPoll({ context }: UserVisit): boolean {
  return context.get('hx-request') === 'true';
}
