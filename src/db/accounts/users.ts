/** The people who use the dashboard. An address belongs to one of them; a password is kept as its hash alone. */

import { newId } from '../../base/id.ts';
import { compareKey } from '../../mail/address.ts';
import type { Db } from '../engine/open.ts';

export interface User {
  id: string;
  email: string;
  name: string;
  /** Null until the person has set one. */
  passwordHash: string | null;
  /** Sealed; null where no second factor is asked for. */
  totpSecret: string | null;
  /** The time step of the code that was used last. */
  totpStep: number | null;
  /** Sees all organizations, and what is the service's own. */
  isOperator: boolean;
  createdAt: number;
  signedInAt: number | null;
  disabledAt: number | null;
}

export interface NewUser {
  email: string;
  name: string;
  isOperator: boolean;
}

/** Null where somebody has the address. */
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
  return row ? userOf(row) : null;
}

export async function findUserByEmail(db: Db, email: string): Promise<User | null> {
  const row = await db('users')
    .where({ email_key: compareKey(email) })
    .first();
  return row ? userOf(row) : null;
}

/** All, or those of an organization; the oldest first. */
export async function listUsers(db: Db, orgId?: string): Promise<User[]> {
  const rows = db('users').orderBy('users.id').select('users.*');
  if (orgId !== undefined)
    rows.join('memberships', 'memberships.user_id', 'users.id').where({ org_id: orgId });
  return (await rows).map(userOf);
}

/** Somebody can sign in who runs the service. */
export async function hasOperator(db: Db): Promise<boolean> {
  const row = await db('users').where({ operator: true }).whereNotNull('password').first('id');
  return row !== undefined;
}

export interface UserChange {
  name?: string;
  passwordHash?: string;
  totpSecret?: string | null;
  totpStep?: number | null;
  isOperator?: boolean;
  signedInAt?: number;
  disabledAt?: number | null;
}

export async function changeUser(db: Db, id: string, change: UserChange): Promise<void> {
  await db('users').where({ id }).update({
    name: change.name,
    password: change.passwordHash,
    totp_secret: change.totpSecret,
    totp_step: change.totpStep,
    operator: change.isOperator,
    signed_in_at: change.signedInAt,
    disabled_at: change.disabledAt,
  });
}

/** False where the step, or a later one, was used before: of two who bring the same code at once, one is let in. */
export async function useTotpStep(db: Db, id: string, step: number): Promise<boolean> {
  const used = await db('users')
    .where({ id })
    .where((unused) => unused.whereNull('totp_step').orWhere('totp_step', '<', step))
    .update({ totp_step: step });
  return used > 0;
}

// biome-ignore lint/suspicious/noExplicitAny: a row is what the driver gives
export function userOf(row: any): User {
  return {
    id: row.id,
    email: row.email,
    name: row.name,
    passwordHash: row.password,
    totpSecret: row.totp_secret,
    totpStep: row.totp_step,
    isOperator: Boolean(row.operator),
    createdAt: row.created_at,
    signedInAt: row.signed_in_at,
    disabledAt: row.disabled_at,
  };
}
