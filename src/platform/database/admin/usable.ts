/**
 * Whether the database lets us write. On a PostgreSQL that accepts no writes, or without the rights to one table, most of Postern
 * would work, and mail could be accepted that is never sent.
 */
import { DatabaseError, type Db, isPostgres } from '#platform/database/engine/open.ts';

const rightsOnAll = 'GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA';

/** Throws a DatabaseError that says what to do. */
export async function requireUsable(db: Db): Promise<void> {
  if (await isLocked(db))
    throw new DatabaseError(`${lockedText}; \`fuser\` on the file shows which: stop it, then try again`);
  if (!isPostgres(db)) return;
  await requireWritable(db);
  const { rows } = await db.raw(
    `select current_user as "user", current_schema() as "schema", relname as name, "right"
     from pg_class, unnest(array['SELECT', 'INSERT', 'UPDATE', 'DELETE']) as "right"
     where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p') and not relispartition
       and not has_table_privilege(pg_class.oid, "right")
     order by relname`,
  );
  if (rows.length === 0) return;
  const [{ user, schema, name, right }] = rows;
  throw new DatabaseError(
    `the user "${user}" of POSTERN_DATABASE_URL has no right to ${right} on the table ${name}; ` +
      `let the tables' owner run: ${rightsOnAll} ${schema} TO "${user}"`,
  );
}

/**
 * Whether another program holds SQLite's write lock for ten seconds (open.ts): programs can read meanwhile, but nothing can be
 * accepted or recorded.
 */
export async function isLocked(db: Db): Promise<boolean> {
  if (isPostgres(db)) return false;
  try {
    await db.transaction(async () => {});
    return false;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'SQLITE_BUSY') return true;
    throw error;
  }
}

export const lockedText = 'another program has locked the database, so no mail is accepted or sent';

async function requireWritable(db: Db): Promise<void> {
  const { rows } = await db.raw(
    `select pg_is_in_recovery() as "isStandby", current_setting('transaction_read_only') = 'on' as "isReadOnly"`,
  );
  const [{ isStandby, isReadOnly }] = rows;
  if (!isStandby && !isReadOnly) return;
  const [reason, advice] = isStandby
    ? ['it is a standby', 'name the primary']
    : ['default_transaction_read_only is on', 'turn it off for the server, the database and the user'];
  throw new DatabaseError(
    `the database of POSTERN_DATABASE_URL accepts no writes, because ${reason}; ${advice}`,
  );
}
