/**
 * Copies the rows of a table from SQLite to PostgreSQL, in batches bounded in rows and bytes. PostgreSQL's types convert the
 * values: 0 and 1 to booleans, hexadecimal to bytes. A value that a column does not take ends the move with PostgreSQL's error.
 */
import { DatabaseError, type Trx } from '#platform/database/engine/open.ts';
import { toHex } from '#platform/database/engine/packed-json.ts';
import { isAway } from '#platform/database/engine/unavailable.ts';
import { readSchema } from '#platform/database/schema/migrate.ts';

export interface Table {
  name: string;
  columns: string[];
}

/** In the order of the schema's file, which has each table after those that it refers to. */
export async function tablesOf(target: Trx): Promise<Table[]> {
  const names = [...(await readSchema(target)).matchAll(/^CREATE TABLE (\w+) \(/gm)].map(([, name]) => name!);
  const found: { table: string; column: string }[] = await target('information_schema.columns')
    .whereRaw('table_schema = current_schema()')
    .select('table_name as table', 'column_name as column');
  return names.map((name) => ({
    name,
    columns: found.filter(({ table }) => table === name).map(({ column }) => `"${column}"`),
  }));
}

export async function countRows(db: Trx, table: string): Promise<number> {
  return Number((await db(table).count('* as count'))[0]!.count);
}

/** `onRows` is called after each batch. Returns how many rows had NUL, which PostgreSQL cannot store in text. */
export async function copyTable(
  source: Trx,
  target: Trx,
  table: Table,
  onRows: (rows: number) => void,
): Promise<number> {
  let replaced = 0;
  for (let batch = await readBatch(source, table, []); batch.length > 0; ) {
    const rows = batch.map((row) =>
      Object.fromEntries(Object.entries(row).map(([name, value]) => [name, storable(value)])),
    );
    replaced += batch.filter((row) => Object.values(row).some(hasNul)).length;
    // The next batch is read while this one is written.
    const [following] = await Promise.all([
      readBatch(source, table, keyValues(table, batch.at(-1)!)),
      insert(target, table, rows),
    ]);
    onRows(batch.length);
    batch = following;
  }
  return replaced;
}

async function insert(target: Trx, { name, columns }: Table, rows: object[]): Promise<void> {
  const given = `json_populate_recordset(null::${name}, ?::json)`;
  try {
    await target.raw(`insert into ${name} (${columns}) select ${columns} from ${given}`, [
      JSON.stringify(rows),
    ]);
  } catch (error) {
    if (isAway(error)) throw error;
    throw new DatabaseError(
      `PostgreSQL does not take a row of ${name}: ${(error as Error).message.split(' - ').at(-1)}; correct it in SQLite, then move again`,
    );
  }
}

const hasNul = (value: unknown) => typeof value === 'string' && value.includes('\0');

function storable(value: Row[string]): string | number | null {
  if (Buffer.isBuffer(value)) return toHex(value);
  return typeof value === 'string' ? value.replaceAll('\0', '\uFFFD') : value;
}

type Row = Record<string, string | number | Buffer | null>;
type Key = (string | number)[];

/** SQLite's tables without a rowid, and their primary keys. */
const primaryKeys: Record<string, string[]> = { credit_entries: ['org_id', 'id'] };

const keyColumns = ({ name }: Table) => primaryKeys[name] ?? ['rowid'];

/** Under names that no column of ours has. */
const keyValues = (table: Table, row: Row) => keyColumns(table).map((_, at) => row[`key ${at}`]) as Key;

const maxRows = 2_000;
const maxBytes = 4 << 20;

/** Reads rows after that key, at least one if there is any. */
async function readBatch(source: Trx, table: Table, after: Key): Promise<Row[]> {
  const { name, columns } = table;
  const key = keyColumns(table);
  const follows = after.length === 0 ? 'true' : `(${key}) > (${key.map(() => '?')})`;
  const from = `from ${name} where ${follows} order by ${key} limit`;
  const bytes = columns.map((column) => `coalesce(octet_length(${column}), 0)`).join(' + ');
  const sizes: { bytes: number }[] = await source.raw(`select ${bytes} as bytes ${from} ${maxRows}`, after);
  let [count, sum] = [0, 0];
  for (const { bytes } of sizes) {
    sum += bytes;
    if (count > 0 && sum > maxBytes) break;
    count++;
  }
  if (count === 0) return [];
  const named = key.map((column, at) => `${column} as "key ${at}"`);
  return source.raw(`select ${named}, ${columns} ${from} ${count}`, after);
}
