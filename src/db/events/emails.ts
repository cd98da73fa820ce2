/** Reads emails with everything that is known of them. Each question takes a fixed number of statements. */
import type { Attempt, DeliveryStatus, Peer, Reply, TlsUsed } from '../../glossary.ts';
import type { Bounce } from '../../record/transition.ts';
import type { Tally } from '../../tracking/visit.ts';
import { query } from '../engine/json-rows.ts';
import { type Db, isPostgres, type Trx } from '../engine/open.ts';
import { bytesOf, type StoredMessage, storedMessage } from '../queue/messages.ts';
import { tallyFrom } from './engagement.ts';

export interface EmailRecord {
  id: string;
  orgId: string;
  messageId: string;
  from: string;
  replyTo: string | null;
  subject: string;
  to: string[];
  tags: Record<string, string>;
  tracking: { openTracking: boolean; clickTracking: boolean };
  credits: number;
  createdAt: number;
  updatedAt: number;
  deliveries: DeliveryRecord[];
  events: EventRecord[];
}

export interface DeliveryRecord {
  id: string;
  /** The row of the message's bytes; null for a recipient that was never queued. */
  messageId: string | null;
  recipient: string;
  domain: string;
  status: DeliveryStatus;
  attempts: number;
  /** When it is due, or since when it has been, waiting for room at its destination. */
  nextAttemptAt: number | null;
  /** When its state changed last. */
  updatedAt: number;
  expiresAt: number;
  deliveredAt: number | null;
  lastReply: Reply | null;
  mx: Peer | null;
  tls: TlsUsed | null;
  opens: Tally;
  clicks: Tally;
  bounce: Bounce | null;
}

interface EventRecord {
  id: string;
  type: string;
  at: number;
  recipient: string | null;
  data: Record<string, unknown>;
}

export interface AttemptRecord extends Omit<Attempt, 'destination' | 'signal'> {
  deliveryId: string;
  number: number;
}

/**
 * `orgId`: only an email of that organization; null (the operator): any. All of it as it was at one moment: what an
 * event tells, its recipient's state tells too.
 */
export function findEmail(db: Db, id: string, orgId: string | null): Promise<EmailRecord | null> {
  const oneMoment = isPostgres(db) ? { isolationLevel: 'repeatable read' as const } : undefined;
  return db.transaction((trx) => readEmail(trx, id, orgId), oneMoment);
}

async function readEmail(trx: Trx, id: string, orgId: string | null): Promise<EmailRecord | null> {
  const row = await trx('emails')
    .where(orgId === null ? { id } : { id, org_id: orgId })
    .first();
  if (!row) return null;
  const deliveries = await trx('deliveries').where({ email_id: id }).orderBy('position');
  const events = await trx('events').where({ email_id: id }).orderBy('position');
  return {
    id: row.id,
    orgId: row.org_id,
    messageId: row.message_id,
    from: row.sender,
    replyTo: row.reply_to,
    subject: row.subject,
    to: JSON.parse(row.recipients),
    tags: JSON.parse(row.tags),
    tracking: JSON.parse(row.tracking),
    credits: row.credits,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    deliveries: deliveries.map(deliveryFrom),
    events: events.map((event) => ({
      id: event.id,
      type: event.type,
      at: event.at,
      recipient: event.recipient,
      data: JSON.parse(event.data),
    })),
  };
}

// biome-ignore lint/suspicious/noExplicitAny: a row is what the driver gives
function deliveryFrom(row: any): DeliveryRecord {
  return {
    id: row.id,
    messageId: row.message_id,
    recipient: row.recipient,
    domain: row.domain,
    status: row.status,
    attempts: row.attempts,
    nextAttemptAt: row.status === 'sending' ? null : row.due_at,
    updatedAt: row.updated_at,
    expiresAt: row.expires_at,
    deliveredAt: row.delivered_at,
    lastReply: parsed(row.last_reply),
    mx: parsed(row.mx),
    tls: parsed(row.tls),
    opens: tallyFrom(row, 'open'),
    clicks: tallyFrom(row, 'click'),
    bounce: parsed(row.bounce),
  };
}

/** All attempts of an email's deliveries, oldest first, with their transcripts. */
export async function listAttempts(db: Db, emailId: string): Promise<AttemptRecord[]> {
  const rows = await db('attempts')
    .join('deliveries', 'deliveries.id', 'attempts.delivery_id')
    .where('deliveries.email_id', emailId)
    .orderBy([{ column: 'deliveries.position' }, { column: 'attempts.number' }])
    .select('attempts.*');
  return rows.map((row) => ({
    deliveryId: row.delivery_id,
    number: row.number,
    startedAt: row.started_at,
    endedAt: row.ended_at,
    outcome: JSON.parse(row.verdict),
    reply: parsed(row.reply),
    mx: parsed(row.mx),
    tls: parsed(row.tls),
    transcript: JSON.parse(row.transcript),
  }));
}

/** The messages of an email, exactly as they go on the wire, as long as they are kept. */
export async function readSources(db: Db, emailId: string): Promise<Buffer[]> {
  const rows = await query<StoredMessage>(
    db,
    `select ${storedMessage} where messages.email_id = ? and size > 0 order by id`,
    [emailId],
  );
  return rows.map(bytesOf);
}

function parsed<T>(text: string | null): T | null {
  return text === null ? null : JSON.parse(text);
}
