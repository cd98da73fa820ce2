/**
 * Members of an organization, managed by its owners. An organization always keeps an owner. An owner invites an address; the
 * person becomes a member by accepting, with an account or without one. Until then nothing tells the owner which of the two it
 * is: what is stored, listed and mailed is the same. Operators, who know all accounts, also add people at once.
 */

import {
  findMember,
  findMemberByEmail,
  isMemberElsewhere,
  lockOwners,
  removeMembership,
  setMembership,
} from '#accounts/rows/memberships.ts';
import { endLinks } from '#accounts/rows/one-time.ts';
import {
  countInvitations,
  endInvitation,
  findInvitation,
  type PendingInvitation,
  putInvitation,
  useInvitation,
} from '#accounts/rows/open-invitations.ts';
import { changeUser, findUserByEmail, insertUser, type User } from '#accounts/rows/users.ts';
import type { Db, Trx } from '#platform/database/engine/open.ts';
import { type MadeLink, newInvitationLink } from './one-time-links.ts';
import { invite, makeUserLink } from './people.ts';
import type { Role } from './roles.ts';

/** `link`: null if the person is a member now and has a password. */
export type Invited = { link: MadeLink | null } | { reason: 'member' | 'too many' };

interface NewMember {
  orgId: string;
  email: string;
  name: string;
  role: Role;
}

/** Open invitations of an organization. */
export const maxInvitations = 100;

export async function inviteMember(
  db: Db,
  member: NewMember,
  { now, byOperator }: { now: number; byOperator: boolean },
): Promise<Invited> {
  return db.transaction(async (trx): Promise<Invited> => {
    const { orgId, role, ...person } = member;
    if (await findMemberByEmail(trx, orgId, person.email)) return { reason: 'member' };
    if (byOperator) return invite(trx, { ...person, isOperator: false, member: { orgId, role } }, now);
    if ((await countInvitations(trx, orgId, person.email, now)) >= maxInvitations)
      return { reason: 'too many' };
    return { link: await makeInvitation(trx, member, now) };
  });
}

/** A new link for a member who has no password yet. An owner's is an invitation, as for people who are no members. */
export async function inviteAgain(
  db: Db,
  { orgId, member, byOperator }: { orgId: string; member: User & { role: Role }; byOperator: boolean },
  now: number,
): Promise<MadeLink | null> {
  if (member.passwordHash !== null) return null;
  if (byOperator) return makeUserLink(db, member, 'invitation', now);
  const { email, name, role } = member;
  return makeInvitation(db, { orgId, email, name, role }, now);
}

async function makeInvitation(db: Db, member: NewMember, now: number): Promise<MadeLink> {
  const { hash, ...link } = newInvitationLink(now);
  await putInvitation(db, { ...member, hash, expiresAt: link.expiresAt }, now);
  return link;
}

/** The id of the organization; null if the invitation is over. `user` has the invitation's address. */
export async function acceptInvitation(
  db: Db,
  hash: string,
  user: Pick<User, 'id'>,
  now: number,
): Promise<string | null> {
  return db.transaction(async (trx) => {
    const invitation = await takeInvitation(trx, hash, now);
    if (invitation) await join(trx, invitation, user.id, now);
    return invitation?.orgId ?? null;
  });
}

/** Accepts with a new account, and returns it. Changes nothing if somebody may already sign in with the address. */
export async function acceptAsNew(
  db: Db,
  hash: string,
  passwordHash: string,
  now: number,
): Promise<User | 'over' | 'has account'> {
  return db.transaction(async (trx) => {
    const invitation = await findInvitation(trx, hash, now);
    if (!invitation) return 'over';
    const { email, name } = invitation;
    const inserted = await insertUser(trx, { email, name, isOperator: false }, now);
    const user = (await findUserByEmail(trx, email))!;
    if (inserted === null && !(await isUnused(trx, invitation.orgId, user))) return 'has account';
    if (!(await takeInvitation(trx, hash, now))) throw new Error('the invitation was used at the same time');
    await changeUser(trx, user.id, { passwordHash });
    await endLinks(trx, user.id);
    await join(trx, invitation, user.id, now);
    return { ...user, passwordHash };
  });
}

/** Whether the address of the invitation has an account that only its own person opens. */
export async function hasAccount(db: Db, { email, orgId }: PendingInvitation): Promise<boolean> {
  const user = await findUserByEmail(db, email);
  return user !== null && !(await isUnused(db, orgId, user));
}

async function takeInvitation(trx: Trx, hash: string, now: number): Promise<PendingInvitation | null> {
  const invitation = await findInvitation(trx, hash, now);
  return invitation && (await useInvitation(trx, hash, now)) ? invitation : null;
}

/** Somebody who is a member already keeps the role. */
async function join(
  trx: Trx,
  { orgId, role }: PendingInvitation,
  userId: string,
  now: number,
): Promise<void> {
  if (!(await findMember(trx, orgId, userId))) await setMembership(trx, { userId, orgId, role }, now);
}

/** It never gave access: it has no password, and is of no other organization. */
async function isUnused(db: Db, orgId: string, user: User): Promise<boolean> {
  const { id, passwordHash, isOperator, disabledAt } = user;
  if (passwordHash !== null || isOperator || disabledAt !== null) return false;
  return !(await isMemberElsewhere(db, id, orgId));
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

/** With an invitation that is still open, which is not listed for members: it would be a way back. */
export async function removeMember(
  db: Db,
  { orgId, userId }: { orgId: string; userId: string },
): Promise<MembershipChange> {
  return unlessLastOwner(db, orgId, userId, false, async (trx) => {
    const { email } = (await findMember(trx, orgId, userId))!;
    await endInvitation(trx, orgId, email);
    await removeMembership(trx, userId, orgId);
  });
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
