/**
 * All columns with sealed values (accounts/seal.ts), which are sealed again when the secret changes. A new sealed column must
 * be added here.
 */
import type { Db } from '#platform/database/engine/open.ts';

const sealedColumns = [
  { table: 'domains', column: 'dkim_private_key', key: 'id' },
  { table: 'dkim_keys', column: 'private_key', key: 'id' },
  { table: 'webhooks', column: 'secret', key: 'id' },
  { table: 'webhooks', column: 'old_secret', key: 'id' },
  { table: 'users', column: 'totp_secret', key: 'id' },
  { table: 'certificates', column: 'private_key', key: 'host' },
  { table: 'acme_accounts', column: 'private_key', key: 'directory' },
] as const;

interface Sealed {
  table: string;
  column: string;
  /** The column that identifies a row. */
  key: string;
  id: string;
  text: string;
}

const pageSize = 100;

/** Page by page, outside of any transaction. */
async function* sealedTexts(db: Db): AsyncGenerator<Sealed[]> {
  for (const { table, column, key } of sealedColumns) {
    for (let after: string | null = null; ; ) {
      const query = db(table).whereNotNull(column).orderBy(key).limit(pageSize);
      if (after !== null) query.where(key, '>', after);
      const rows: { id: string; text: string }[] = await query.select(`${key} as id`, `${column} as text`);
      yield rows.map(({ id, text }) => ({ table, column, key, id, text }));
      if (rows.length < pageSize) break;
      after = rows.at(-1)!.id;
    }
  }
}

/** Seals all values with the current secret; `renew` returns null if a value already is. Returns how many it changed. */
export async function resealAll(
  db: Db,
  renew: (text: string) => string | null,
  onProgress: (seen: number) => void,
): Promise<number> {
  let [seen, resealed] = [0, 0];
  for await (const page of sealedTexts(db)) {
    await db.transaction(async (trx) => {
      for (const { table, column, key, id, text } of page) {
        const renewed = renew(text);
        if (renewed === null) continue;
        // A value that another process has changed meanwhile stays.
        resealed += await trx(table)
          .where({ [key]: id, [column]: text })
          .update({ [column]: renewed });
      }
    });
    seen += page.length;
    onProgress(seen);
  }
  return resealed;
}

/** Counts all sealed values, and those that `opens` cannot open. */
export async function countSealed(
  db: Db,
  opens: (text: string) => boolean,
): Promise<{ all: number; closed: number }> {
  let [all, closed] = [0, 0];
  for await (const page of sealedTexts(db)) {
    all += page.length;
    closed += page.filter(({ text }) => !opens(text)).length;
  }
  return { all, closed };
}
