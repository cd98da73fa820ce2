/** Receiving routes. Each is of one organization and one of its domains; they are asked by priority, then the oldest first. */
import { lockOrganization } from '#accounts/rows/organizations.ts';
import type { ReceivingRoute } from '#mail/received/received-mail.ts';
import { newId } from '#platform/base/id.ts';
import type { Db, Trx } from '#platform/database/engine/open.ts';
import { number, orNull, records, text, value } from '#platform/database/engine/records.ts';

const routes = records({
  id: text,
  orgId: text,
  domain: text,
  priority: number,
  pattern: text,
  action: value<ReceivingRoute['action']>(),
  webhookId: orNull(text),
  reply: orNull(text),
  dmarc: value<ReceivingRoute['dmarc']>(),
  largest: orNull(number),
  createdAt: number,
  updatedAt: number,
});

/** The organization's, by domain; within one, in the order in which they are asked. */
export async function listRoutes(db: Db, orgId: string): Promise<ReceivingRoute[]> {
  const rows = await db('receiving_routes').where({ org_id: orgId }).orderBy(['domain', 'priority', 'id']);
  return rows.map(routes.read);
}

/** In the order in which they are asked. */
export async function routesOfDomain(db: Db, orgId: string, domain: string): Promise<ReceivingRoute[]> {
  const rows = await db('receiving_routes').where({ org_id: orgId, domain }).orderBy(['priority', 'id']);
  return rows.map(routes.read);
}

/** `orgId` null: a route of any organization. */
export async function findRoute(db: Db, id: string, orgId: string | null): Promise<ReceivingRoute | null> {
  const row = await db('receiving_routes')
    .where(orgId === null ? { id } : { id, org_id: orgId })
    .first();
  return row ? routes.read(row) : null;
}

/** Calls `change` with the organization's routes, which no other call changes until it ends. */
export async function withRoutes<Result>(
  db: Db,
  orgId: string,
  change: (trx: Trx, present: ReceivingRoute[]) => Promise<Result>,
): Promise<Result> {
  return db.transaction(async (trx) => {
    await lockOrganization(trx, orgId);
    return change(trx, await listRoutes(trx, orgId));
  });
}

export type NewRoute = Omit<ReceivingRoute, 'id' | 'createdAt' | 'updatedAt'>;

export async function insertRoute(trx: Trx, route: NewRoute, now: number): Promise<ReceivingRoute> {
  const added = { ...route, id: newId(), createdAt: now, updatedAt: now };
  await trx('receiving_routes').insert(routes.write(added));
  return added;
}

export async function updateRoute(trx: Trx, { id, ...route }: ReceivingRoute): Promise<void> {
  await trx('receiving_routes').where({ id }).update(routes.write(route));
}

export async function deleteRoute(db: Db, id: string): Promise<void> {
  await db('receiving_routes').where({ id }).delete();
}

export async function isWebhookOf(db: Db, orgId: string, webhookId: string): Promise<boolean> {
  const row = await db('webhooks').where({ id: webhookId, org_id: orgId }).first('id');
  return row !== undefined;
}
