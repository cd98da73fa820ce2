/**
 * Members of an organization, managed by its owners. An organization always keeps an owner. An owner can invite only people
 * without an account: addresses of accounts are not verified, so adding an account of another organization, or creating a link
 * for it, could hand it to the wrong person. Only an operator may do that.
 */
import {
  findMember,
  isMemberElsewhere,
  lockOwners,
  removeMembership,
  setMembership,
} from '#accounts/rows/memberships.ts';
import { findUserByEmail, type User } from '#accounts/rows/users.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { Refusal } from '#platform/values/refusal.ts';
import type { MadeLink } from './one-time-links.ts';
import { type Invitation, invite, makeUserLink } from './people.ts';
import type { Role } from './roles.ts';

export type Invited = { link: MadeLink | null } | { reason: 'member' | 'other-organization' };

interface NewMember extends Pick<Invitation, 'email' | 'name'> {
  orgId: string;
  role: Role;
}

/** `link`: null if the person already has a password. */
export async function inviteMember(
  db: Db,
  { orgId, role, ...person }: NewMember,
  { now, byOperator }: { now: number; byOperator: boolean },
): Promise<Invited> {
  return db.transaction(async (trx): Promise<Invited> => {
    const known = await findUserByEmail(trx, person.email);
    if (known && (await findMember(trx, orgId, known.id))) return { reason: 'member' };
    if (known && !byOperator && !(await isOnlyOurs(trx, orgId, known)))
      return { reason: 'other-organization' };
    const { link, isNew } = await invite(trx, { ...person, isOperator: false, member: { orgId, role } }, now);
    if (isNew === (known !== null))
      throw new Refusal('BAD_REQUEST', 'Another request changed this person at the same time. Try again.');
    return { link };
  });
}

/** A new invitation link, which ends earlier ones. Null if the person has a password or belongs to others, too. */
export async function inviteAgain(
  db: Db,
  { orgId, user, byOperator }: { orgId: string; user: User; byOperator: boolean },
  now: number,
): Promise<MadeLink | null> {
  const isOurs = user.passwordHash === null && (byOperator || (await isOnlyOurs(db, orgId, user)));
  return isOurs ? makeUserLink(db, user, 'invitation', now) : null;
}

/** The person has no password and no access except to this organization. */
async function isOnlyOurs(db: Db, orgId: string, user: User): Promise<boolean> {
  return user.passwordHash === null && !user.isOperator && !(await isMemberElsewhere(db, user.id, orgId));
}

export type MembershipChange = 'done' | 'last owner' | 'gone';

export async function changeRole(
  db: Db,
  { orgId, userId, role }: { orgId: string; userId: string; role: Role },
  now: number,
): Promise<MembershipChange> {
  return unlessLastOwner(db, orgId, userId, role === 'owner', (trx) =>
    setMembership(trx, { orgId, userId, role }, now),
  );
}

export async function removeMember(
  db: Db,
  { orgId, userId }: { orgId: string; userId: string },
): Promise<MembershipChange> {
  return unlessLastOwner(db, orgId, userId, false, (trx) => removeMembership(trx, userId, orgId));
}

async function unlessLastOwner(
  db: Db,
  orgId: string,
  userId: string,
  staysOwner: boolean,
  change: (trx: Db) => Promise<unknown>,
): Promise<MembershipChange> {
  return db.transaction(async (trx) => {
    const owners = await lockOwners(trx, orgId);
    if (!(await findMember(trx, orgId, userId))) return 'gone';
    if (!staysOwner && owners.length === 1 && owners[0] === userId) return 'last owner';
    await change(trx);
    return 'done';
  });
}
