/** Who may do what in which organization. Operators need none: they are owners everywhere. */
import type { Role } from '../../accounts/roles.ts';
import type { Db, Trx } from '../engine/open.ts';
import { type Pause, pauseOf } from './organizations.ts';
import { type User, userOf } from './users.ts';

/** An organization as a name to choose. */
export interface OrgName {
  id: string;
  name: string;
}

export interface Membership extends OrgName {
  role: Role;
  pause: Pause | null;
}

/** Where the user has one already, it changes. */
export async function setMembership(
  db: Db,
  { userId, orgId, role }: { userId: string; orgId: string; role: Role },
  now: number,
): Promise<void> {
  await db('memberships')
    .insert({ user_id: userId, org_id: orgId, role, created_at: now })
    .onConflict(['user_id', 'org_id'])
    .merge({ role });
}

export async function removeMembership(db: Db, userId: string, orgId: string): Promise<boolean> {
  return (await db('memberships').where({ user_id: userId, org_id: orgId }).delete()) > 0;
}

export async function findMembership(db: Db, userId: string, orgId: string): Promise<Membership | null> {
  const row = await memberships(db, userId).where({ org_id: orgId }).first();
  return row ? membershipOf(row) : null;
}

export async function listMemberships(db: Db, userId: string): Promise<Membership[]> {
  return (await memberships(db, userId).orderBy('organizations.id')).map(membershipOf);
}

export interface Member extends User {
  role: Role;
  joinedAt: number;
}

/** Of an organization, in the order in which they came to this service; `after` is the last of the page before. */
export async function listMembers(
  db: Db,
  orgId: string,
  { after, limit }: { after?: string | undefined; limit: number },
): Promise<Member[]> {
  const rows = members(db, orgId).orderBy('users.id').limit(limit);
  if (after !== undefined) rows.where('users.id', '>', after);
  return (await rows).map(memberOf);
}

export async function findMember(db: Db, orgId: string, userId: string): Promise<Member | null> {
  const row = await members(db, orgId).where({ user_id: userId }).first();
  return row ? memberOf(row) : null;
}

function members(db: Db, orgId: string) {
  return db('memberships')
    .join('users', 'users.id', 'memberships.user_id')
    .where({ org_id: orgId })
    .select('users.*', 'memberships.role', 'memberships.created_at as joined_at');
}

// biome-ignore lint/suspicious/noExplicitAny: a row is what the driver gives
function memberOf(row: any): Member {
  return { ...userOf(row), role: row.role, joinedAt: row.joined_at };
}

/** Locks them, so that of two owners who leave at once one stays. */
export async function lockOwners(trx: Trx, orgId: string): Promise<string[]> {
  const owner: Role = 'owner';
  const rows = await trx('memberships').where({ org_id: orgId, role: owner }).orderBy('user_id').forUpdate();
  return rows.map(({ user_id }) => user_id);
}

/** Whether the user is of another organization too. */
export async function isMemberElsewhere(db: Db, userId: string, orgId: string): Promise<boolean> {
  const row = await db('memberships').where({ user_id: userId }).whereNot({ org_id: orgId }).first('org_id');
  return row !== undefined;
}

function memberships(db: Db, userId: string) {
  return db('memberships')
    .join('organizations', 'organizations.id', 'memberships.org_id')
    .where({ user_id: userId })
    .select('organizations.id', 'name', 'role', 'paused_at', 'paused_reason');
}

// biome-ignore lint/suspicious/noExplicitAny: a row is what the driver gives
function membershipOf(row: any): Membership {
  return { id: row.id, name: row.name, role: row.role, pause: pauseOf(row) };
}

/** Names by id. */
export async function organizationNames(db: Db, ids: Iterable<string>): Promise<Map<string, string>> {
  const rows = await db('organizations')
    .whereIn('id', [...new Set(ids)])
    .select('id', 'name');
  return new Map(rows.map(({ id, name }) => [id, name]));
}

/** The organizations whose name contains a text, the newest first; `after` is the last of the page before. */
export async function searchOrganizations(
  db: Db,
  { text, after, limit }: { text: string; after?: string | undefined; limit: number },
): Promise<(OrgName & { createdAt: number })[]> {
  const query = db('organizations').orderBy('id', 'desc').limit(limit);
  if (text !== '')
    query.whereRaw("lower(name) like ? escape '\\'", [`%${text.toLowerCase().replace(/[\\%_]/g, '\\$&')}%`]);
  if (after !== undefined) query.where('id', '<', after);
  const rows = await query.select('id', 'name', 'created_at');
  return rows.map(({ id, name, created_at }) => ({ id, name, createdAt: created_at }));
}
