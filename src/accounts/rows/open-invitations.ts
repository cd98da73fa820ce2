/**
 * Invitations that an organization's owners have made and that are not accepted yet: one for each address, whether it has an
 * account or not. Only the SHA-256 of the link's token is stored.
 */
import type { Role } from '#accounts/people/roles.ts';
import { newId } from '#platform/base/id.ts';
import { deleteExpired } from '#platform/database/engine/delete-old.ts';
import { countOf } from '#platform/database/engine/json-rows.ts';
import type { Db, Trx } from '#platform/database/engine/open.ts';
import { number, records, text, value } from '#platform/database/engine/records.ts';
import { compareKey } from '#platform/values/address.ts';

const invitations = records({
  id: text,
  orgId: text,
  email: text,
  name: text,
  role: value<Role>(),
  expiresAt: number,
});

export type PendingInvitation = ReturnType<typeof invitations.read>;

type NewInvitation = Omit<PendingInvitation, 'id'> & { hash: string };

/** The link of an earlier invitation for the address ends. */
export async function putInvitation(
  db: Db,
  { hash, ...invitation }: NewInvitation,
  now: number,
): Promise<void> {
  const row = invitations.write({ id: newId(), ...invitation });
  await db('invitations')
    .insert({ ...row, hash, email_key: compareKey(invitation.email), created_at: now })
    .onConflict(['org_id', 'email_key'])
    .merge();
}

/** Without that of `email`. */
export function countInvitations(db: Db, orgId: string, email: string, now: number): Promise<number> {
  return countOf(open(db, orgId, now).whereNot({ email_key: compareKey(email) }));
}

/** Without those of members. */
export async function listInvitations(db: Db, orgId: string, now: number): Promise<PendingInvitation[]> {
  const memberKeys = db('memberships')
    .join('users', 'users.id', 'memberships.user_id')
    .where({ org_id: orgId })
    .select('users.email_key');
  const rows = await open(db, orgId, now).whereNotIn('email_key', memberKeys).orderBy('email_key');
  return rows.map(invitations.read);
}

export async function findInvitation(db: Db, hash: string, now: number): Promise<PendingInvitation | null> {
  const row = await db('invitations').where({ hash }).where('expires_at', '>', now).first();
  return row ? invitations.read(row) : null;
}

/** True for only one of several callers. */
export async function useInvitation(trx: Trx, hash: string, now: number): Promise<boolean> {
  return (await trx('invitations').where({ hash }).where('expires_at', '>', now).delete()) > 0;
}

/** False if the organization has no such invitation. */
export async function removeInvitation(db: Db, orgId: string, id: string): Promise<boolean> {
  return (await db('invitations').where({ org_id: orgId, id }).delete()) > 0;
}

export async function endInvitation(db: Db, orgId: string, email: string): Promise<void> {
  await db('invitations')
    .where({ org_id: orgId, email_key: compareKey(email) })
    .delete();
}

export const forgetInvitations = (db: Db, now: number) => deleteExpired(db, 'invitations', 'hash', now);

const open = (db: Db, orgId: string, now: number) =>
  db('invitations').where({ org_id: orgId }).where('expires_at', '>', now);
