/**
 * Organizations with what they sent, what waits and what they can still spend, sorted by one of these. Reads the hourly
 * statistics, the index of waiting mail and the rows of organizations; counts no emails.
 */
import type { Db } from '#platform/database/engine/open.ts';
import { inStage } from '#platform/database/tables/unfinished-deliveries.ts';
import { type Organization, organizationFrom, realOrganizations } from './organizations.ts';

const summed = ['sent', 'bounced', 'complained'] as const;

export interface OrganizationFigures extends Record<(typeof summed)[number], number> {
  id: string;
  org: Organization;
  waiting: number;
}

/** More waiting mail is not counted: a million takes SQLite some 50 ms. */
export const maxWaiting = 1_000_000;

/** The credits of a period that has ended count as used until the next send renews them. */
const credits = 'wallet + case when quota_limit > quota_used then quota_limit - quota_used else 0 end';

/** The newest first, the names from A to Z, the most of a figure first, the fewest credits first. */
const orders = {
  newest: 'organizations.id desc',
  name: 'lower(name)',
  sent: 'coalesce(sent, 0) desc, organizations.id desc',
  bounced: 'coalesce(bounced, 0) desc, organizations.id desc',
  complained: 'coalesce(complained, 0) desc, organizations.id desc',
  waiting: 'coalesce(waiting, 0) desc, organizations.id desc',
  credits: `quota_limit is null, ${credits}, organizations.id desc`,
};

export type OrganizationOrder = keyof typeof orders;

export const organizationOrders = Object.keys(orders) as OrganizationOrder[];

interface Wanted {
  /** Part of the name. */
  text: string;
  order: OrganizationOrder;
  /** The figures are counted from this time on. */
  since: number;
  /** The last of the previous page; only for the order `newest`. */
  after?: string | undefined;
  limit: number;
}

export async function listWithFigures(db: Db, wanted: Wanted): Promise<OrganizationFigures[]> {
  const { text, order, since, after, limit } = wanted;
  const hours = db('statistics').where('hour', '>=', since).groupBy('org_id').select('org_id');
  for (const name of summed) hours.sum({ [name]: name });
  const some = db('deliveries').where(inStage('waiting')).limit(maxWaiting).select('org_id');
  const waiting = db(some.as('some')).groupBy('org_id').select('org_id').count('* as waiting');
  const query = realOrganizations(db)
    .leftJoin(hours.as('hours'), 'hours.org_id', 'organizations.id')
    .leftJoin(waiting.as('mail'), 'mail.org_id', 'organizations.id')
    .orderByRaw(orders[order])
    .limit(limit);
  if (text !== '') {
    // No name has a NUL, which PostgreSQL does not take.
    const wanted = text.toLowerCase().replaceAll('\0', '\ufffd');
    const pattern = `%${wanted.replace(/[\\%_]/g, '\\$&')}%`;
    query.whereRaw("lower(name) like ? escape '\\'", [pattern]);
  }
  if (after !== undefined) query.where('organizations.id', '<', after);
  const rows = await query.select('organizations.*', ...summed, 'waiting');
  return rows.map((row) => ({
    id: row.id,
    org: organizationFrom(row),
    sent: Number(row.sent ?? 0),
    bounced: Number(row.bounced ?? 0),
    complained: Number(row.complained ?? 0),
    waiting: Number(row.waiting ?? 0),
  }));
}
