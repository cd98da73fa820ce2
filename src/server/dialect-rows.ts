/** Gives the dialects the rows that they look up, without the database. */
import { CallSlots } from '../api/server-busy.ts';
import { deleteDomain, listDomains, setDomainTls, setDomainTracking } from '../db/accounts/domains-table.ts';
import { findKey, listKeys, revokeKey } from '../db/accounts/keys.ts';
import {
  countSuppressions,
  findSuppression,
  suppressedAmong,
  suppressionKey,
} from '../db/accounts/suppressions.ts';
import type { Db } from '../db/engine/open.ts';
import { findEmail, listAttempts, readSources } from '../db/events/emails.ts';
import { positionBefore, readEventsBefore } from '../db/events/event-range.ts';
import { findEvents, readEvents } from '../db/events/read-events.ts';
import { searchEmails } from '../db/events/search-emails.ts';
import { readFigures } from '../db/events/statistics.ts';
import { cancelEmail } from '../db/queue/cancel-email.ts';
import { reschedule } from '../db/queue/scheduled-mail.ts';
import { listWebhookAttempts, listWebhookMessages } from '../db/webhooks/webhook-attempts.ts';
import { replay } from '../db/webhooks/webhook-replay-rows.ts';
import { deleteWebhook, findWebhook, listWebhooks } from '../db/webhooks/webhooks.ts';
import type { DialectStore } from '../dialects/dialect-store.ts';
import type { MessageReader } from './message-reading.ts';

/** The deliveries of one email, the oldest first. */
const maxEvents = 1000;

/** Messages in memory at once for an organization's calls; each may be many MiB. */
const maxMessages = 6;

export function createDialectStore(db: Db, reader: Pick<MessageReader, 'files'>): DialectStore {
  const messageSlots = new CallSlots({ ofOne: maxMessages });
  const readSource: DialectStore['readSource'] = async (context, { id, orgId }) => {
    messageSlots.takeUntilSent(context, orgId);
    const [source = null] = await readSources(db, id, 1);
    return source;
  };
  return {
    findEmail: (orgId, id) => findEmail(db, id, orgId),
    cancelEmail: (email, now) =>
      cancelEmail(db, email, { reason: 'canceled through the API', bySender: true, now }),
    moveEmail: async ({ id: emailId, orgId }, at, now) =>
      (await reschedule(db, { emailId, orgId, at, now })) === 'rescheduled',
    eventsOf: async ({ id: emailId, orgId }) =>
      (await readEvents(db, { orgId, emailId, after: 0, limit: maxEvents })).events,
    async readFiles(context, email, wanted) {
      const raw = await readSource(context, email);
      return raw && ((await reader.files(email.orgId, raw, wanted)) ?? 'unreadable');
    },
    readSource,
    searchEmails: (search) => searchEmails(db, search),
    readEvents: (query) => readEvents(db, query),
    readEventsBefore: (query) => readEventsBefore(db, query),
    positionBefore: (orgId, at) => positionBefore(db, orgId, at),
    listDomains: (orgId) => listDomains(db, orgId),
    removeDomain: (id) => deleteDomain(db, id),
    setDomainTls: (id, tls) => setDomainTls(db, id, tls),
    setDomainTracking: (id, tracking) => setDomainTracking(db, id, tracking),
    listKeys: (orgId, page) => listKeys(db, orgId, page),
    findKey: (orgId, id) => findKey(db, id, orgId),
    revokeKey: (id, now) => revokeKey(db, id, now),
    listWebhooks: (orgId) => listWebhooks(db, orgId),
    findWebhook: (orgId, id) => findWebhook(db, id, orgId),
    removeWebhook: (id) => deleteWebhook(db, id),
    listWebhookMessages: (webhookId, page) => listWebhookMessages(db, webhookId, page),
    listWebhookAttempts: (webhookId, page) => listWebhookAttempts(db, webhookId, page),
    findEvent: async (id) => (await findEvents(db, [id]))[0] ?? null,
    replayEvent: async (webhook, eventId, now) => void (await replay(db, webhook, { eventId }, now)),
    findSuppression: (orgId, key) => findSuppression(db, orgId, key),
    suppressedAmong: async (orgId, keys) => {
      const pairs = keys.map((addressKey) => ({ orgId, addressKey }));
      const { suppressed } = await suppressedAmong(db, pairs);
      return new Set(keys.filter((key) => suppressed.has(suppressionKey(orgId, key))));
    },
    countBounces: async (orgId) => {
      const figures = await readFigures(db, orgId, 0);
      const sum = (name: 'bounced' | 'expired' | 'complained') =>
        figures.reduce((total, hour) => total + hour[name], 0);
      return {
        bounced: sum('bounced'),
        expired: sum('expired'),
        complained: sum('complained'),
        suppressed: await countSuppressions(db, orgId),
      };
    },
    transcriptOf: async (emailId, { recipient, attempt }) => {
      const attempts = await listAttempts(db, emailId, recipient);
      return attempts.find(({ number }) => number === attempt)?.transcript ?? [];
    },
  };
}
