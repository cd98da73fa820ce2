/**
 * Return paths under the sender's own domain, which align SPF with it: `bounces.` before its name. A domain's column
 * `return_path` is the state:
 *
 *   none     its record has not been found
 *   used     its record is there, so its mail has this return path
 *   former   the record was there once; bounces of mail from that time are still accepted
 */
import type { Db } from '#platform/database/engine/open.ts';

export type ReturnPathState = 'none' | 'used' | 'former';

const label = 'bounces.';

/** With the local part, a return path may have 256 bytes (RFC 5321 section 4.5.3.1.3); this leaves room for `<b-…@` and `>`. */
const maxLength = 200;

/** Null if the name would be too long. */
export function returnPathOf(domain: string): string | null {
  const name = `${label}${domain}`;
  return name.length > maxLength ? null : name;
}

export function returnPathInUse(domain: { name: string; returnPath: ReturnPathState }): string | null {
  return domain.returnPath === 'used' ? returnPathOf(domain.name) : null;
}

/** The index has only these rows (schema step 030). */
const indexed = "return_path <> 'none'";

/** A statement of one row, however many domains there are, which is another one than before if `returnPathsInUse` has changed. */
export const returnPathsVersion = (kind: string) =>
  `select '${kind}', cast(count(*) as text), cast(sum(checked_at) as text) from domains where ${indexed} and return_path = 'used'`;

/** All domains that use their own return path: `organization domain`. */
export async function returnPathsInUse(db: Db): Promise<Set<string>> {
  const rows = await db('domains').whereRaw(indexed).where({ return_path: 'used' }).select('org_id', 'name');
  return new Set(rows.map((row) => `${row.org_id} ${row.name}`));
}

/** Whether bounces may arrive for this name, because it is or was the return path of a registered domain. */
export async function isReturnPath(db: Db, name: string): Promise<boolean> {
  if (!name.startsWith(label)) return false;
  const row = await db('domains')
    .whereRaw(indexed)
    .where({ name: name.slice(label.length) })
    .first('id');
  return row !== undefined;
}
