/** The roles of users in organizations. Operators need no membership: they are owners everywhere. */

import type { Role } from '#accounts/people/roles.ts';
import type { Db, Trx } from '#platform/database/engine/open.ts';
import { compareKey } from '#platform/values/address.ts';
import { serverOrgId } from '#platform/values/glossary.ts';
import { type Pause, pauseOf, realOrganizations } from './organizations.ts';
import { type User, users } from './users.ts';

export interface OrgName {
  id: string;
  name: string;
}

export interface Membership extends OrgName {
  role: Role;
  pause: Pause | null;
  requiresSecondFactor: boolean;
}

/** Adds a membership, or changes its role. */
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
  return row ? membershipFrom(row) : null;
}

export async function listMemberships(db: Db, userId: string): Promise<Membership[]> {
  return (await memberships(db, userId).orderBy('organizations.id')).map(membershipFrom);
}

export interface Member extends User {
  role: Role;
  joinedAt: number;
}

/** Lists an organization's members by id; `after` is the last of the previous page. */
export async function listMembers(
  db: Db,
  orgId: string,
  { after, limit }: { after?: string | undefined; limit: number },
): Promise<Member[]> {
  const rows = members(db, orgId).orderBy('users.id').limit(limit);
  if (after !== undefined) rows.where('users.id', '>', after);
  return (await rows).map(memberFrom);
}

export async function findMember(db: Db, orgId: string, userId: string): Promise<Member | null> {
  const row = await members(db, orgId).where({ user_id: userId }).first();
  return row ? memberFrom(row) : null;
}

export async function findMemberByEmail(db: Db, orgId: string, email: string): Promise<Member | null> {
  const row = await members(db, orgId)
    .where({ email_key: compareKey(email) })
    .first();
  return row ? memberFrom(row) : null;
}

function members(db: Db, orgId: string) {
  return db('memberships')
    .join('users', 'users.id', 'memberships.user_id')
    .where({ org_id: orgId })
    .select('users.*', 'memberships.role', 'memberships.created_at as joined_at');
}

// biome-ignore lint/suspicious/noExplicitAny: the driver's rows have no type
function memberFrom(row: any): Member {
  return { ...users.read(row), role: row.role, joinedAt: row.joined_at };
}

/** Locks the owners, so that one stays if two leave at the same time. */
export async function lockOwners(trx: Trx, orgId: string): Promise<string[]> {
  const owner: Role = 'owner';
  const rows = await trx('memberships').where({ org_id: orgId, role: owner }).orderBy('user_id').forUpdate();
  return rows.map(({ user_id }) => user_id);
}

/** Whether the user is a member of another organization. */
export async function isMemberElsewhere(db: Db, userId: string, orgId: string): Promise<boolean> {
  const row = await db('memberships').where({ user_id: userId }).whereNot({ org_id: orgId }).first('org_id');
  return row !== undefined;
}

function memberships(db: Db, userId: string) {
  return db('memberships')
    .join('organizations', 'organizations.id', 'memberships.org_id')
    .where({ user_id: userId })
    .select('organizations.id', 'name', 'role', 'paused_at', 'paused_reason', 'requires_second_factor');
}

// biome-ignore lint/suspicious/noExplicitAny: the driver's rows have no type
function membershipFrom(row: any): Membership {
  const { id, name, role, requires_second_factor } = row;
  return { id, name, role, pause: pauseOf(row), requiresSecondFactor: Boolean(requires_second_factor) };
}

export async function organizationNames(db: Db, ids: Iterable<string>): Promise<Map<string, string>> {
  const rows = await db('organizations')
    .whereIn('id', [...new Set(ids)])
    .select('id', 'name');
  return new Map(rows.map(({ id, name }) => [id, id === serverOrgId ? 'this server' : name]));
}

/** The newest first. */
export async function newestOrganizations(db: Db, limit: number): Promise<OrgName[]> {
  return realOrganizations(db).orderBy('id', 'desc').limit(limit).select('id', 'name');
}
