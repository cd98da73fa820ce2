/**
 * Deletes an organization with all its data: emails in small parts, so that SQLite has time for other writers, then the rows
 * that may be many, then the organization, whose last rows go by foreign keys. It is paused first, and none of its mail is
 * being sent any more. An interrupted removal leaves it paused, and can be repeated.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Knex } from 'knex';
import { countOf } from '#platform/database/engine/json-rows.ts';
import type { Db, Trx } from '#platform/database/engine/open.ts';
import { withoutForeignKeys } from '#platform/database/engine/without-foreign-keys.ts';
import { inStage } from '#platform/database/tables/unfinished-deliveries.ts';

/** The rows that are deleted. */
export interface OrganizationContents {
  emails: number;
  /** Deliveries that are neither sent nor bounced. */
  waiting: number;
  keys: number;
  domains: number;
  suppressions: number;
  webhooks: number;
  /** Users who belong to no other organization and are not operators. */
  users: number;
}

const emailsAtOnce = 50;
const rowsAtOnce = 500;
const daysAtOnce = 5;
/** SQLite has one writer at a time; another writer that waits for it retries after this long or a little more. */
const writerPauseMs = 20;

export async function countContents(db: Db, orgId: string): Promise<OrganizationContents> {
  const count = (table: string) => countOf(db(table).where({ org_id: orgId }));
  let waiting = 0;
  for (const stage of ['waiting', 'leased', 'held', 'scheduled'] as const)
    waiting += await countOf(db('deliveries').where({ org_id: orgId }).where(inStage(stage)));
  return {
    emails: await count('emails'),
    waiting,
    keys: await countOf(db('api_keys').where({ org_id: orgId, revoked_at: null })),
    domains: await count('domains'),
    suppressions: await count('suppressions'),
    webhooks: await count('webhooks'),
    users: await countOf(ownUsers(db, orgId)),
  };
}

export function countSending(db: Db, orgId: string): Promise<number> {
  return countOf(db('deliveries').where({ org_id: orgId }).where(inStage('leased')));
}

/** The emails are the mail's own to delete; `onProgress` gets the number of emails that have been deleted. */
interface RemovalTerms {
  deleteEmails(db: Db, ids: string[]): Promise<void>;
  onProgress(emails: number): void;
}

export async function removeOrganization(
  db: Db,
  orgId: string,
  { deleteEmails, onProgress }: RemovalTerms,
): Promise<void> {
  for (let deleted = 0; ; await pause(writerPauseMs)) {
    const ids = await db('emails').where({ org_id: orgId }).orderBy('id').limit(emailsAtOnce).pluck('id');
    if (ids.length === 0) break;
    await deleteEmails(db, ids);
    deleted += ids.length;
    onProgress(deleted);
  }
  const webhooks = db('webhooks').where({ org_id: orgId }).select('id');
  await deleteInParts(db, 'webhook_attempts', (query) => query.whereIn('webhook_id', webhooks));
  await deleteInParts(db, 'webhook_messages', (query) => query.whereIn('webhook_id', webhooks));
  for (const table of ['events', 'credit_entries', 'suppressions', 'soft_bounces', 'received_mails'])
    await deleteInParts(db, table, (query) => query.where({ org_id: orgId }));
  await deleteGroupStatistics(db, orgId);
  await db.transaction(async (trx) => {
    await trx('users').whereIn('id', ownUsers(trx, orgId).select('id')).delete();
    for (const table of fewRows) await trx(table).where({ org_id: orgId }).delete();
  });
  await withoutForeignKeys(db, async (trx) => {
    await trx('organizations').where({ id: orgId }).delete();
  });
}

/** Tables that refer to organizations and have few rows of each. */
const fewRows = [
  'auto_pauses',
  'webhooks',
  'api_keys',
  'daily_usage',
  'domains',
  'idempotency',
  'invitations',
  'memberships',
  'received_stores',
  'receiving_routes',
  'resubscriptions',
  'streams',
  'statistics',
];

async function deleteInParts(
  db: Db,
  table: string,
  matching: (query: Knex.QueryBuilder) => Knex.QueryBuilder,
): Promise<void> {
  for (; ; await pause(writerPauseMs)) {
    const ids: string[] = await matching(db(table)).limit(rowsAtOnce).pluck('id');
    // The ledger is found by its organization only.
    if (ids.length > 0) await matching(db(table)).whereIn('id', ids).delete();
    if (ids.length < rowsAtOnce) return;
  }
}

/** It has no foreign key and no id: some days at a time. */
async function deleteGroupStatistics(db: Db, orgId: string): Promise<void> {
  const ofOrg = () => db('group_statistics').where({ org_id: orgId });
  for (;;) {
    const [day] = await ofOrg().orderBy('day').limit(1).pluck('day');
    if (day === undefined) return;
    await ofOrg()
      .where('day', '<', day + daysAtOnce * 86_400_000)
      .delete();
    await pause(writerPauseMs);
  }
}

function ownUsers(db: Db | Trx, orgId: string): Knex.QueryBuilder {
  const members = db('memberships').where({ org_id: orgId }).select('user_id');
  const elsewhere = db('memberships').whereNot({ org_id: orgId }).select('user_id');
  return db('users').where({ operator: false }).whereIn('id', members).whereNotIn('id', elsewhere);
}
