/** How people come to be: the first operator by the link of set-up, everybody else by an invitation. */

import { setMembership } from '../db/accounts/memberships.ts';
import { type LinkPurpose, type OneTimeLink, useLink, useSetUp } from '../db/accounts/one-time.ts';
import { endSessions } from '../db/accounts/sessions-table.ts';
import { changeUser, findUserByEmail, hasOperator, insertUser, type User } from '../db/accounts/users.ts';
import type { Db } from '../db/engine/open.ts';
import { makeOrganization } from './create-organization.ts';
import { type MadeLink, makeLink } from './one-time-links.ts';
import type { Role } from './roles.ts';

/** Null where there is an operator: then there is nothing to set up. */
export async function makeSetUpLink(db: Db, now: number): Promise<MadeLink | null> {
  return (await hasOperator(db)) ? null : makeLink(db, { purpose: 'set-up', userId: null }, now);
}

export interface FirstOperator {
  email: string;
  name: string;
  passwordHash: string;
  /** One to begin with; empty: none. */
  organization: string;
}

/** The new operator's id; null where the link holds no more. */
export async function setUp(db: Db, hash: string, first: FirstOperator, now: number): Promise<string | null> {
  return db.transaction(async (trx) => {
    if (!(await useSetUp(trx, hash, now)) || (await hasOperator(trx))) return null;
    // The command line may have made the same person, who never set a password.
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

/** Somebody who has an account becomes a member with it, and has a link only where there is no password yet. */
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

/** For who has lost the password, or never set one. The old password holds until the link is used. */
export async function makeUserLink(
  db: Db,
  user: Pick<User, 'id'>,
  purpose: Exclude<LinkPurpose, 'set-up'>,
  now: number,
): Promise<MadeLink> {
  return makeLink(db, { purpose, userId: user.id }, now);
}

/** Nobody gets in as them any more, and what they have open ends; what they are of stays, for when they are let in again. */
export async function disableUser(db: Db, id: string, now: number): Promise<void> {
  await db.transaction(async (trx) => {
    await changeUser(trx, id, { disabledAt: now });
    await endSessions(trx, id);
  });
}

export async function enableUser(db: Db, id: string): Promise<void> {
  await changeUser(db, id, { disabledAt: null });
}

/** By a link. What was open elsewhere ends. False where the link holds no more. */
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
