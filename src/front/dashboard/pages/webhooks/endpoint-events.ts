/**
 * The events of an endpoint, newest first, each with its attempts, filtered by state and type; and one event as it is posted. No
 * index has the types, so one request reads a bounded number of events and says how to go on.
 */
import { z } from 'zod';
import { legible } from '#front/dashboard/legible.ts';
import { type DashboardPage, fragment, type OrgVisit, type PageParts, show } from '#front/dashboard/page.ts';
import { notFound } from '#front/dashboard/page-error.ts';
import { findEvents } from '#mail/record/rows/read-events.ts';
import { secretsOf } from '#mail/webhooks/endpoint-secrets.ts';
import {
  countMessages,
  listAttemptsOf,
  listWebhookMessages,
  type WebhookAttemptRecord,
  type WebhookMessageRecord,
} from '#mail/webhooks/rows/webhook-attempts.ts';
import type { Webhook } from '#mail/webhooks/rows/webhooks.ts';
import { signedPost } from '#mail/webhooks/signed-post.ts';
import { pagedSearch } from '#platform/database/tables/paged-search.ts';
import { shellWord } from '#platform/settings/shell-word.ts';
import { eventTypes } from '#platform/values/glossary.ts';
import { webhookIn } from './find-endpoint.ts';

export const webhookEventsPage: DashboardPage = {
  organization: {
    'GET /dashboard/o/:org/webhooks/:id/events': async (visit, { db }) =>
      fragment('webhooks/events', await eventsData(visit, db, await webhookIn(visit, db))),
    'GET /dashboard/o/:org/webhooks/:id/events/:event': eventPage,
  },
};

/** The state that the list is filtered by, and the words for it. */
const states = [
  ['', 'Any state'],
  ['open', 'Waiting'],
  ['delivered', 'Delivered'],
  ['failed', 'Failed'],
] as const;

const types = [['', 'Any type'], ...eventTypes.map((type) => [type, type] as const)] as const;

const badges = {
  waiting: { tone: 'busy', text: 'Waiting' },
  queued: { tone: 'busy', text: 'Waiting' },
  delivered: { tone: 'good', text: 'Delivered' },
  failed: { tone: 'bad', text: 'Failed' },
} as const;

const pageSize = 25;
/** Shown on a page; an event has a dozen, and more if it is replayed. */
const maxAttempts = 400;

/** Also a part of the page, which is requested again while events wait. */
export async function eventsData(visit: OrgVisit, db: PageParts['db'], webhook: Webhook) {
  const { query, base } = visit;
  const url = `${base}/webhooks/${webhook.id}`;
  const state = states.find(([name]) => name === query.get('state'))?.[0] ?? '';
  const type = types.find(([name]) => name === query.get('type'))?.[0] ?? '';
  const after = query.get('after');
  if (after !== null && !z.guid().safeParse(after).success) throw notFound();
  const { found, next } = await pagedSearch<WebhookMessageRecord>({
    read: async (edge, limit) => {
      const page = { after: edge, limit, failed: state === 'failed' };
      return { rows: await listWebhookMessages(db, webhook.id, page) };
    },
    positionOf: ({ id }) => id,
    isWanted: (message) => isInState(message, state) && (type === '' || message.type === type),
    after,
    limit: pageSize,
    maxScanned: 2000,
    pageSize: state === '' && type === '' ? pageSize + 1 : 250,
  });
  const ids = found.map(({ id }) => id);
  const attempts = await listAttemptsOf(db, webhook.id, ids, maxAttempts);
  const byEvent = Map.groupBy(attempts, ({ eventId }) => eventId);
  const events = new Map((await findEvents(db, ids)).map((event) => [event.id, event]));
  const counts = await countMessages(db, webhook.id);
  const filters = { ...(state && { state }), ...(type && { type }) };
  const addressOf = (more: object) => `?${new URLSearchParams({ ...filters, ...more })}`;
  // A healthy endpoint gets its events within moments, so the page updates itself until then.
  const isHealthy = webhook.status === 'active' && webhook.failingSince === null;
  return {
    ...counts,
    url,
    rows: found.map((message) => ({
      ...rowOf(message, byEvent.get(message.id) ?? []),
      /** Events are deleted before their attempts. */
      recipient: legible(events.get(message.id)?.recipient ?? ''),
      emailId: events.get(message.id)?.email?.id ?? null,
    })),
    values: { state, type },
    states,
    types,
    isFiltered: state !== '' || type !== '',
    isFirst: after === null,
    isSearching: next !== null && found.length < pageSize,
    next: next === null ? null : `${url}${addressOf({ after: next })}`,
    live: counts.open > 0 && after === null && isHealthy ? `${url}/events${addressOf({})}` : null,
  };
}

function isInState({ status }: WebhookMessageRecord, state: string): boolean {
  if (state === 'open') return status === 'waiting' || status === 'queued';
  return state === '' || status === state;
}

function rowOf(
  { id, type, status, dueAt, createdAt }: WebhookMessageRecord,
  attempts: WebhookAttemptRecord[],
) {
  const badge = badges[status];
  return { id, type, badge, createdAt, attempts, dueAt: status === 'queued' ? dueAt : null };
}

async function eventPage(visit: OrgVisit, { db, seal }: PageParts) {
  const webhook = await webhookIn(visit, db);
  const { event: eventId } = visit.context.params as { event: string };
  if (!z.guid().safeParse(eventId).success) throw notFound('event');
  const id = eventId.toLowerCase();
  const [message] = await listWebhookMessages(db, webhook.id, { eventId: id, limit: 1 });
  if (!message) throw notFound('event');
  const [event] = await findEvents(db, [id]);
  const data = {
    webhook,
    url: `${visit.base}/webhooks/${webhook.id}`,
    row: rowOf(message, await listAttemptsOf(db, webhook.id, [id], maxAttempts)),
    emailId: event?.email?.id ?? null,
    /** Null if the event has been deleted, or is a received mail, which has a page of its own. */
    post:
      event && event.type !== 'email.received' && visit.may('developer')
        ? postOf(webhook, event, seal, visit.now)
        : null,
    receivedId: event?.data.receivedId ?? null,
  };
  return show('webhooks/event', message.type, data);
}

/** As it would be posted now; the user name and the password of Postmark's format stay hidden. */
function postOf(
  webhook: Webhook,
  event: Parameters<typeof signedPost>[0],
  seal: PageParts['seal'],
  now: number,
) {
  const secrets = secretsOf(webhook, now).map(seal.open);
  const { headers, body } = signedPost(event, { format: webhook.format, secrets, now });
  const shown = Object.entries(headers).map(([name, value]) => ({
    name,
    value: name === 'authorization' ? 'Basic …' : value,
  }));
  const options = shown.map(({ name, value }) => `  -H ${shellWord(`${name}: ${value}`)} \\\n`).join('');
  const curl = `curl ${shellWord(webhook.url)} \\\n${options}  --data-raw ${shellWord(body)}`;
  return { headers: shown, body: readable(body), curl };
}

function readable(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}
