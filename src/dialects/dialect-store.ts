/**
 * The rows that dialects look up and delete, each within one organization. server/dialect-rows.ts reads them from the database,
 * which dialects never see. What needs more than a look-up is a service in accounts/ or webhooks/.
 */
import type { Context } from 'koa';
import type { keyDocument } from '../accounts/create-key.ts';
import type { DomainCheck } from '../accounts/domain-registration.ts';
import type { Search, SearchPage } from '../db/events/search-emails.ts';
import type { StreamParts } from '../api/events/event-stream.ts';
import type { Reply, TranscriptLine } from '../glossary.ts';
import type { telemetry } from '../record/telemetry.ts';
import type { AddedWebhook } from '../webhooks/endpoints.ts';

type EventPage = Awaited<ReturnType<StreamParts['readEvents']>>;

export type StoredDomain = DomainCheck['domain'];
export type StoredEvent = EventPage['events'][number];
export type StoredEmail = Parameters<typeof telemetry>[0];
export type StoredKey = Parameters<typeof keyDocument>[0];
export type StoredWebhook = AddedWebhook['webhook'];

export interface SentFile {
  /** Its position in the message. */
  id: string;
  filename: string | null;
  type: string;
  isInline: boolean;
  contentId: string | null;
  size: number;
  content: Buffer | null;
}

export interface StoredSuppression {
  id: string;
  address: string;
  reason: string;
  createdAt: number;
  /** With which the address bounced, with its whole line as text; null: it did not, or it is not known. */
  reply: Reply | null;
}

/** Rows after this one, in the order of the list, or the last ones before this one. */
export interface Page {
  after?: string | undefined;
  before?: string | undefined;
  limit: number;
}

interface EventsPage extends Page {
  /** Only those of this event. */
  eventId?: string;
}

/** An event on its way to an endpoint, by the event's id. */
interface StoredWebhookMessage {
  id: string;
  type: string;
  status: 'waiting' | 'queued' | 'delivered' | 'failed';
  dueAt: number | null;
  /** Set while it is tried; `dueAt` is then no time of a try. */
  leaseOwner: string | null;
  createdAt: number;
}

interface StoredWebhookAttempt {
  id: string;
  startedAt: number;
  status: number | null;
  answer: string | null;
  error: string | null;
}

/** The email whose message it is. */
interface StoredMessage {
  id: string;
  orgId: string;
}

export interface DialectStore {
  findEmail(orgId: string, id: string): Promise<StoredEmail | null>;
  /** The recipients that nothing more is sent to; null if the email no longer exists. */
  cancelEmail(email: StoredEmail, now: number): Promise<{ canceled: string[] } | null>;
  /** False if its time has come, or it is not scheduled. */
  moveEmail(email: StoredEmail, at: number, now: number): Promise<boolean>;
  /** With their positions. */
  eventsOf(email: StoredEmail): Promise<StoredEvent[]>;
  /**
   * The attached files of an email; only the one with the id `wanted` has its content. Null if its message is no longer kept.
   * Refuses if too many responses to the organization have a message in memory.
   */
  readFiles(
    context: Context,
    email: StoredMessage,
    wanted: string | null,
  ): Promise<SentFile[] | 'unreadable' | null>;
  /** Its message as it is sent, the first one if each recipient has one. As `readFiles`. */
  readSource(context: Context, email: StoredMessage): Promise<Buffer | null>;
  searchEmails(search: Search): Promise<SearchPage>;
  readEvents: StreamParts['readEvents'];
  /** The newest first. */
  readEventsBefore(query: {
    orgId: string;
    before: number;
    limit: number;
    types: readonly string[];
  }): Promise<EventPage>;
  /** A position before every event of this time or later. */
  positionBefore(orgId: string, at: number): Promise<number>;
  listDomains(orgId: string): Promise<StoredDomain[]>;
  removeDomain(id: string): Promise<void>;
  setDomainTls(id: string, tls: StoredDomain['tls']): Promise<void>;
  setDomainTracking(id: string, tracking: { opens?: boolean; clicks?: boolean }): Promise<void>;
  listKeys(orgId: string, page: Page): Promise<StoredKey[]>;
  findKey(orgId: string, id: string): Promise<StoredKey | null>;
  revokeKey(id: string, now: number): Promise<boolean>;
  listWebhooks(orgId: string): Promise<StoredWebhook[]>;
  findWebhook(orgId: string, id: string): Promise<StoredWebhook | null>;
  removeWebhook(id: string): Promise<boolean>;
  /** The newest events first. */
  listWebhookMessages(webhookId: string, page: EventsPage): Promise<StoredWebhookMessage[]>;
  /** The newest first. */
  listWebhookAttempts(webhookId: string, page: EventsPage): Promise<StoredWebhookAttempt[]>;
  /** Null if it has been deleted. */
  findEvent(id: string): Promise<StoredEvent | null>;
  replayEvent(webhook: StoredWebhook, eventId: string, now: number): Promise<void>;
  /** Keyed by the form in which addresses are compared. */
  findSuppression(orgId: string, key: string): Promise<StoredSuppression | null>;
  /** The keys that are on the suppression list. */
  suppressedAmong(orgId: string, keys: string[]): Promise<Set<string>>;
  /** Sums of the statistics, as far back as they are kept; `suppressed`: the length of the suppression list. */
  countBounces(
    orgId: string,
  ): Promise<{ bounced: number; expired: number; complained: number; suppressed: number }>;
  /** Empty if it is no longer kept. */
  transcriptOf(emailId: string, of: { recipient: string; attempt: number }): Promise<TranscriptLine[]>;
}
