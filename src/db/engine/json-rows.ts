/**
 * Values given to a statement as the rows of a table named `given`: one JSON value, so that the statement's text is the
 * same however many there are, and is compiled once.
 */
import { type Db, isPostgres } from './open.ts';

export interface JsonRows {
  /** For the statement's FROM; its one placeholder is for the JSON of the rows. */
  from: string;
  column(name: string): string;
}

/** The rows are objects with these members; `types` are PostgreSQL's, SQLite takes what JSON has (and JSONB: see insert-rows.ts). */
export function jsonRows(db: Db, types: Record<string, string>): JsonRows {
  if (!isPostgres(db)) {
    return { from: 'jsonb_each(?) as given', column: (name) => `given.value ->> '${name}'` };
  }
  const columns = Object.entries(types).map(([name, type]) => `${name} ${type}`);
  return {
    from: `json_to_recordset(?::json) as given(${columns.join(', ')})`,
    column: (name) => `given.${name}`,
  };
}

/** The rows that a statement written by hand answered. */
export async function query<Row>(db: Db, sql: string, values: (string | number)[]): Promise<Row[]> {
  const found = await db.raw(sql, values);
  return isPostgres(db) ? found.rows : found;
}

/**
 * SQLite has one writer, who has locked all there is. Of PostgreSQL's locks the one that lets others write rows that refer
 * to these (their foreign keys take a share of the key): outcomes are recorded while an organization's sends are decided.
 */
export const forUpdate = (db: Db) => (isPostgres(db) ? 'for no key update' : '');
