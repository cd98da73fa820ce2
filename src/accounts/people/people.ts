/** Creates users: the first operator by the set-up link, all others by an invitation. Resets, disables and enables them. */

import { makeOrganization } from '#accounts/create-organization.ts';
import { setMembership } from '#accounts/rows/memberships.ts';
import { type LinkPurpose, type OneTimeLink, useLink, useSetUp } from '#accounts/rows/one-time.ts';
import { endSessions } from '#accounts/rows/sessions-table.ts';
import { changeUser, findUserByEmail, hasOperator, insertUser, type User } from '#accounts/rows/users.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { type MadeLink, makeLink } from './one-time-links.ts';
import type { Role } from './roles.ts';

/** Null if an operator exists: then set-up is done. */
export async function makeSetUpLink(db: Db, now: number): Promise<MadeLink | null> {
  return (await hasOperator(db)) ? null : makeLink(db, { purpose: 'set-up', userId: null }, now);
}

export interface FirstOperator {
  email: string;
  name: string;
  passwordHash: string;
  /** Name of a first organization; empty for none. */
  organization: string;
}

/** The new operator's id; null if the link is no longer valid. */
export async function setUp(db: Db, hash: string, first: FirstOperator, now: number): Promise<string | null> {
  return db.transaction(async (trx) => {
    if (!(await useSetUp(trx, hash, now)) || (await hasOperator(trx))) return null;
    // The command line may have created the same user, without a password.
    const known = await findUserByEmail(trx, first.email);
    const id = known?.id ?? (await insertUser(trx, { ...first, isOperator: true }, now))!;
    const { name, passwordHash } = first;
    await changeUser(trx, id, { name, passwordHash, isOperator: true });
    if (first.organization !== '') {
      const org = await makeOrganization(trx, { name: first.organization }, now);
      await setMembership(trx, { userId: id, orgId: org.id, role: 'owner' }, now);
    }
    return id;
  });
}

export interface Invitation {
  email: string;
  name: string;
  isOperator: boolean;
  member: { orgId: string; role: Role } | null;
}

/** An existing user becomes a member with the account. A link is made only if the user has no password yet. */
export async function invite(
  db: Db,
  { member, ...person }: Invitation,
  now: number,
): Promise<{ userId: string; isNew: boolean; link: MadeLink | null }> {
  return db.transaction(async (trx) => {
    const id = await insertUser(trx, person, now);
    const user = (await findUserByEmail(trx, person.email))!;
    if (person.isOperator && !user.isOperator) await changeUser(trx, user.id, { isOperator: true });
    if (member) await setMembership(trx, { userId: user.id, ...member }, now);
    const link = user.passwordHash === null ? await makeUserLink(trx, user, 'invitation', now) : null;
    return { userId: user.id, isNew: id !== null, link };
  });
}

/** A link to set a password, or to sign in (`open`). The old password is valid until a link to set one is used. */
export async function makeUserLink(
  db: Db,
  user: Pick<User, 'id'>,
  purpose: Exclude<LinkPurpose, 'set-up' | 'sign-in'>,
  now: number,
): Promise<MadeLink> {
  return makeLink(db, { purpose, userId: user.id }, now);
}

/** Ends the user's sessions and refuses new ones. Memberships are kept, for `enableUser`. */
export async function disableUser(db: Db, id: string, now: number): Promise<void> {
  await db.transaction(async (trx) => {
    await changeUser(trx, id, { disabledAt: now });
    await endSessions(trx, id);
  });
}

export async function enableUser(db: Db, id: string): Promise<void> {
  await changeUser(db, id, { disabledAt: null });
}

/** Ends the user's other sessions. False if the link is no longer valid. */
export async function setPasswordByLink(
  db: Db,
  link: OneTimeLink,
  passwordHash: string,
  now: number,
): Promise<boolean> {
  return db.transaction(async (trx) => {
    if (link.userId === null || !(await useLink(trx, link.hash, now))) return false;
    await changeUser(trx, link.userId, { passwordHash });
    await endSessions(trx, link.userId);
    return true;
  });
}
