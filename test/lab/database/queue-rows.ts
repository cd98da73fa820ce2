/** A database without a server, whose queue a test fills row by row. */
import type { ExecutionContext } from 'ava';
import { v7 as uuid } from 'uuid';
import { insertOrganization } from '#accounts/rows/organizations.ts';
import { insertRows } from '#platform/database/engine/insert-rows.ts';
import { domainOf } from '#platform/values/address.ts';
import type { DatabaseKind } from './databases.ts';
import { openMigrated } from './open-migrated.ts';

/** The present of these tests. */
export const now = Date.parse('2026-11-20T12:00:00Z');
export const minute = 60_000;

export interface Row {
  recipient?: string;
  status?: string;
  attempts?: number;
  due_at?: number | null;
  lease_owner?: string | null;
  created_at?: number;
  expires_at?: number;
  updated_at?: number;
  last_reply?: string | null;
  org_id?: string;
}

export async function openQueue(t: ExecutionContext, kind: DatabaseKind) {
  const { db, dataDir, url } = await openMigrated(t, kind);
  const newOrg = (name = 'Another') => db.transaction((trx) => insertOrganization(trx, name, now));
  const orgId = await newOrg('Acme');

  /** One email with these rows, deferred unless they say otherwise; its id and theirs. */
  async function add(...rows: Row[]) {
    const emailId = uuid();
    const owner = rows[0]?.org_id ?? orgId;
    const deliveries = rows.map(({ recipient = 'ann@there.invalid', ...row }, position) => ({
      id: uuid(),
      email_id: emailId,
      org_id: owner,
      position,
      recipient,
      domain: domainOf(recipient),
      status: 'deferred',
      attempts: 1,
      due_at: now + 10 * minute,
      created_at: now - minute,
      expires_at: now + 60 * minute,
      updated_at: now - minute,
      lease_owner: null,
      last_reply: null,
      ...row,
    }));
    await db.transaction(async (trx) => {
      await insertRows(trx, 'emails', [emailRow(emailId, owner)]);
      await insertRows(trx, 'deliveries', deliveries);
    });
    return { emailId, ids: deliveries.map(({ id }) => id) };
  }

  const read = (id: string) => db('deliveries').where({ id }).first();
  const settings = { POSTERN_DATA_DIR: dataDir, ...(url && { POSTERN_DATABASE_URL: url }) };
  return { db, dataDir, orgId, newOrg, add, read, settings };
}

function emailRow(id: string, orgId: string): object {
  return {
    id,
    org_id: orgId,
    message_id: `${id}@postern.invalid`,
    sender: 'app@sender.invalid',
    subject: 'Hello',
    recipients: '[]',
    tags: '{}',
    tracking: '{"openTracking":false,"clickTracking":false}',
    credits: 1,
    created_at: now - minute,
    updated_at: now - minute,
  };
}
