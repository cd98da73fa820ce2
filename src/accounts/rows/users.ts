/** Users of the dashboard. An address belongs to one user; only the hash of a password is stored. */

import { newId } from '#platform/base/id.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { flag, inColumn, number, orNull, records, text } from '#platform/database/engine/records.ts';
import { compareKey } from '#platform/values/address.ts';

export const users = records({
  id: text,
  email: text,
  name: text,
  /** Null until the user has set a password. */
  passwordHash: inColumn('password', orNull(text)),
  /** Sealed; null: no second factor. */
  totpSecret: orNull(text),
  /** The time step of the last code that was used. */
  totpStep: orNull(number),
  /** Sees all organizations and the service itself. */
  isOperator: inColumn('operator', flag),
  createdAt: number,
  signedInAt: orNull(number),
  disabledAt: orNull(number),
});

export type User = ReturnType<typeof users.read>;

export type NewUser = Pick<User, 'email' | 'name' | 'isOperator'>;

/** Null if another user has the address. */
export async function insertUser(
  db: Db,
  { email, name, isOperator }: NewUser,
  now: number,
): Promise<string | null> {
  const id = newId();
  const inserted = await db('users')
    .insert({ id, email, email_key: compareKey(email), name, operator: isOperator, created_at: now })
    .onConflict('email_key')
    .ignore()
    .returning('id');
  return inserted.length > 0 ? id : null;
}

export async function findUser(db: Db, id: string): Promise<User | null> {
  const row = await db('users').where({ id }).first();
  return row ? users.read(row) : null;
}

export async function findUserByEmail(db: Db, email: string): Promise<User | null> {
  const row = await db('users')
    .where({ email_key: compareKey(email) })
    .first();
  return row ? users.read(row) : null;
}

/** Lists all users, or those of an organization, the oldest first. */
export async function listUsers(db: Db, orgId?: string): Promise<User[]> {
  const rows = db('users').orderBy('users.id').select('users.*');
  if (orgId !== undefined)
    rows.join('memberships', 'memberships.user_id', 'users.id').where({ org_id: orgId });
  return (await rows).map(users.read);
}

/** Addresses of the people who can solve a problem: the organization's owners; without `orgId` or owners, the operators. */
export async function responsibleAddresses(db: Db, orgId: string | null): Promise<string[]> {
  const enabled = () => db('users').whereNull('disabled_at').orderBy('id').limit(maxTold);
  const able = () => enabled().whereNotNull('password');
  const owners =
    orgId === null
      ? []
      : await able()
          .join('memberships', 'memberships.user_id', 'users.id')
          .where({ org_id: orgId, role: 'owner' })
          .pluck('email');
  if (owners.length > 0) return owners;
  const operators = await able().where({ operator: true }).pluck('email');
  // The first one may not have set a password yet when something already goes wrong.
  return operators.length > 0 ? operators : enabled().where({ operator: true }).pluck('email');
}

const maxTold = 20;

/** Whether an operator can sign in. */
export async function hasOperator(db: Db): Promise<boolean> {
  const row = await db('users').where({ operator: true }).whereNotNull('password').first('id');
  return row !== undefined;
}

/** The address of the operator that was added first. */
export async function firstOperator(db: Db): Promise<string | null> {
  const row = await db('users').where({ operator: true }).orderBy('created_at').first('email');
  return row?.email ?? null;
}

export type UserChange = Partial<Omit<User, 'id' | 'email' | 'createdAt'>>;

export async function changeUser(db: Db, id: string, change: UserChange): Promise<void> {
  await db('users').where({ id }).update(users.write(change));
}

/**
 * False if the step or a later one has been used before: a code that is sent twice at the same time is accepted once. A step
 * that is later than codes can be (accounts/people/totp.ts) was used by a clock that was ahead.
 */
export async function useTotpStep(db: Db, id: string, step: number): Promise<boolean> {
  const used = await db('users')
    .where({ id })
    .where((unused) =>
      unused
        .whereNull('totp_step')
        .orWhere('totp_step', '<', step)
        .orWhere('totp_step', '>', step + 2),
    )
    .update({ totp_step: step });
  return used > 0;
}
