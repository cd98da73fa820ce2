/**
 * All columns with sealed values (accounts/seal.ts), which are sealed again when the secret changes. A new sealed column must
 * be added here.
 */
import type { Db } from '../engine/open.ts';

const sealedColumns = [
  { table: 'domains', column: 'dkim_private_key' },
  { table: 'dkim_keys', column: 'private_key' },
  { table: 'webhooks', column: 'secret' },
  { table: 'webhooks', column: 'old_secret' },
  { table: 'users', column: 'totp_secret' },
] as const;

interface Sealed {
  table: string;
  column: string;
  id: string;
  text: string;
}

const pageSize = 100;

/** Page by page, outside of any transaction. */
async function* sealedTexts(db: Db): AsyncGenerator<Sealed[]> {
  for (const { table, column } of sealedColumns) {
    for (let after: string | null = null; ; ) {
      const query = db(table).whereNotNull(column).orderBy('id').limit(pageSize);
      if (after !== null) query.where('id', '>', after);
      const rows: { id: string; text: string }[] = await query.select('id', `${column} as text`);
      yield rows.map(({ id, text }) => ({ table, column, id, text }));
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
      for (const { table, column, id, text } of page) {
        const renewed = renew(text);
        if (renewed === null) continue;
        // A value that another process has changed meanwhile stays.
        resealed += await trx(table)
          .where({ id, [column]: text })
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
