/** Deletes rows that others refer to. PostgreSQL has no foreign keys between the tables of mails (partitions.ts). */

import { transactionBetween } from '#platform/vendor/knex.ts';
import { type Db, isPostgres, type Trx } from './open.ts';

/**
 * With foreign keys, SQLite would scan all messages for those of each email, and all deliveries for those of each message,
 * because the indexes for that are missing, and nothing else needs them. Nothing else uses the connection meanwhile. The
 * pragma takes effect when it is compiled, so it must not be a prepared statement.
 */
export async function withoutForeignKeys(db: Db, change: (trx: Trx) => Promise<void>): Promise<void> {
  if (isPostgres(db)) return db.transaction(change);
  const foreignKeys = (mode: 'on' | 'off') => `pragma foreign_keys = ${mode}`;
  await transactionBetween(db, { before: foreignKeys('off'), after: foreignKeys('on') }, change);
}
