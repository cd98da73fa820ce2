/** Drops indexes while tables are filled, which is several times as fast, and creates them again afterwards. */
import { type Db, isPostgres } from '#platform/database/engine/open.ts';

/** Drops all indexes except those of keys. The returned function creates them again. */
export async function dropIndexes(db: Db, tables: readonly string[]): Promise<() => Promise<void>> {
  const indexes = await (isPostgres(db) ? postgresIndexes : sqliteIndexes)(db, tables);
  for (const { name } of indexes) await db.raw(`drop index ${name}`);
  return async () => {
    for (const { sql } of indexes) await db.raw(sql);
  };
}

interface Index {
  name: string;
  sql: string;
}

async function sqliteIndexes(db: Db, tables: readonly string[]): Promise<Index[]> {
  return db('sqlite_master')
    .where({ type: 'index' })
    .whereIn('tbl_name', tables)
    .where('sql', 'like', 'create index%')
    .select('name', 'sql');
}

async function postgresIndexes(db: Db, tables: readonly string[]): Promise<Index[]> {
  return (
    db('pg_indexes')
      .where({ schemaname: 'public' })
      .whereIn('tablename', tables)
      .where('indexdef', 'like', 'CREATE INDEX%')
      // On a partitioned table, this statement would not create the indexes of the partitions.
      .select('indexname as name', db.raw("replace(indexdef, ' ON ONLY ', ' ON ') as sql"))
  );
}
