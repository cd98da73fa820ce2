/**
 * Our account at each certificate authority, which all nodes share; its key is sealed (accounts/seal.ts). While the authority
 * fails or limits us, no node asks it before `resumeAt`.
 */
import type { Db } from '#platform/database/engine/open.ts';
import { number, records, text } from '#platform/database/engine/records.ts';

const accounts = records({
  directory: text,
  privateKey: text,
  resumeAt: number,
  /** How many times in a row it was paused. */
  pauses: number,
});

export type AcmeAccount = ReturnType<typeof accounts.read>;

/** If two nodes create the account at once, one stores its key, and both use that. */
export async function openAccount(db: Db, directory: string, createKey: () => string): Promise<AcmeAccount> {
  const find = () => db('acme_accounts').where({ directory }).first();
  const found = await find();
  if (found) return accounts.read(found);
  const account = { directory, privateKey: createKey(), resumeAt: 0, pauses: 0 };
  await db('acme_accounts').insert(accounts.write(account)).onConflict('directory').ignore();
  return accounts.read(await find());
}

export async function pauseAccount(
  db: Db,
  directory: string,
  { resumeAt, pauses }: { resumeAt: number; pauses: number },
): Promise<void> {
  await db('acme_accounts').where({ directory }).update({ resume_at: resumeAt, pauses });
}
