/** Rows that the dashboard shows in addition to mail, as many as a large organization has; and ids for its pages. */
import { v7 as uuid } from 'uuid';
import { insertRows } from '../../../src/db/engine/insert-rows.ts';
import type { Db } from '../../../src/db/engine/open.ts';

const suppressions = 100_000;
const rowsAStatement = 5000;

/** The organization must have mail, a key and a domain. */
export async function furnishOrganization(db: Db, orgId: string): Promise<void> {
  const now = Date.now();
  const numbers = (count: number) => Array.from({ length: count }, (_, n) => n);
  for (let start = 0; start < suppressions; start += rowsAStatement) {
    const rows = numbers(rowsAStatement).map((n) => {
      const address = `n${start + n}@past${n}.invalid`;
      return {
        id: uuid(),
        org_id: orgId,
        address,
        address_key: address,
        reason: 'imported',
        created_at: now,
      };
    });
    await db.transaction((trx) => insertRows(trx, 'suppressions', rows));
  }
  const webhooks = numbers(20).map((n) => ({
    id: uuid(),
    org_id: orgId,
    url: `https://hooks.invalid/${n}`,
    types: '[]',
    secret: '',
    status: 'disabled',
    reason: 'of the measurement',
    after_position: 0,
    created_at: now,
    updated_at: now,
  }));
  const events = await db('events')
    .where({ org_id: orgId })
    .orderBy('position', 'desc')
    .limit(20_000)
    .select();
  const messages = events.map((event) => ({
    id: uuid(),
    webhook_id: webhooks[0]!.id,
    event_id: event.id,
    type: event.type,
    position: event.position,
    status: 'failed',
    attempts: 1,
    created_at: now,
    updated_at: now,
  }));
  const attempts = messages.map(({ id }) => ({
    id: uuid(),
    message_id: id,
    webhook_id: webhooks[0]!.id,
    number: 1,
    started_at: now,
    duration: 30,
    url: 'https://hooks.invalid/0',
    status: 500,
    answer: 'no',
    error: 'HTTP 500',
  }));
  const domains = numbers(50).map((n) => ({
    id: uuid(),
    org_id: orgId,
    name: `d${n}.invalid`,
    status: 'pending',
    created_at: now,
    dkim_selector: 's',
    dkim_public_key: '',
    dkim_private_key: '',
  }));
  const keys = numbers(200).map((n) => ({
    id: uuid(),
    org_id: orgId,
    label: `key ${n}`,
    hash: `hash ${n}`,
    hint: 'em_',
    scopes: '[]',
    created_at: now,
  }));
  await db.transaction(async (trx) => {
    await insertRows(trx, 'webhooks', webhooks);
    for (let start = 0; start < messages.length; start += rowsAStatement) {
      await insertRows(trx, 'webhook_messages', messages.slice(start, start + rowsAStatement));
      await insertRows(trx, 'webhook_attempts', attempts.slice(start, start + rowsAStatement));
    }
    await insertRows(trx, 'domains', domains);
    await insertRows(trx, 'api_keys', keys);
  });
}

/** An existing id by the path segment before the parameter; null if the segment is not known here. */
export async function exampleOf(db: Db, orgId: string, segment: string): Promise<string | null> {
  const newest = async (table: string, column = 'id') =>
    (await db(table).where({ org_id: orgId }).orderBy('id', 'desc').first())?.[column] ?? null;
  const known: Record<string, () => Promise<string | null>> = {
    o: async () => orgId,
    emails: () => newest('emails'),
    keys: () => newest('api_keys'),
    suppressions: () => newest('suppressions'),
    domains: async () => 'sender.invalid',
    webhooks: async () => (await db('webhook_messages').first())?.webhook_id ?? null,
    team: async () => (await db('users').first())?.id ?? null,
    attempts: async () => (await db('webhook_attempts').first())?.id ?? null,
    to: async () =>
      (await db('deliveries').whereRaw("status in ('queued', 'deferred')").first())?.domain ?? null,
  };
  return (await known[segment]?.()) ?? null;
}
