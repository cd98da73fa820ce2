/** The schema of a database as SQL that creates it: plain enough to be read in review, and the same however it came about. */
import { type Db, isPostgres } from '#platform/database/engine/open.ts';

export const dumpSchema = (db: Db): Promise<string> => (isPostgres(db) ? dumpPostgres : dumpSqlite)(db);

const isOurs = (name: string) => !/^(knex_|sqlite_)/.test(name);

async function dumpSqlite(db: Db): Promise<string> {
  const rows: { tbl_name: string; sql: string }[] = await db('sqlite_master')
    .whereNotNull('sql')
    .orderBy(['tbl_name', { column: 'type', order: 'desc' }, 'name'])
    .select('tbl_name', 'sql');
  return rows
    .filter((row) => isOurs(row.tbl_name))
    .map(({ sql }) => `${readable(sql)};\n`)
    .join('\n');
}

/** One column a line. */
function readable(sql: string): string {
  return sql
    .replaceAll(/[`"]/g, '')
    .replaceAll(/\s+/g, ' ')
    .replace(
      /^(CREATE TABLE \w+) \( ?(.*?) ?\)( without rowid)?$/,
      (_, head, body, kind = '') => `${head} (\n  ${splitColumns(body).join(',\n  ')}\n)${kind}`,
    );
}

function splitColumns(body: string): string[] {
  return body.split(/, (?![^(]*\))/);
}

interface Named {
  table: string;
  def: string;
}

/** Partitions have what their table has, so only what they have besides is shown. */
async function dumpPostgres(db: Db): Promise<string> {
  const rowsOf = async <Row>(sql: string): Promise<Row[]> => (await db.raw(sql)).rows;
  const tables = await rowsOf<{
    name: string;
    by: string | null;
    parent: string | null;
    bounds: string;
    options: string;
  }>(
    `select relname as name, pg_get_partkeydef(pg_class.oid) as by, inhparent::regclass::text as parent,
       pg_get_expr(relpartbound, pg_class.oid) as bounds, array_to_string(reloptions, ', ') as options
     from pg_class left join pg_inherits on inhrelid = pg_class.oid
     where relkind in ('r', 'p') and relnamespace = current_schema()::regnamespace order by coalesce(inhparent::regclass::text, relname), relname`,
  );
  const columns = await rowsOf<Named>(
    `select table_name as table, concat_ws(' ', column_name, data_type, case is_nullable when 'NO' then 'NOT NULL' end,
       'DEFAULT ' || column_default) as def
     from information_schema.columns where table_schema = current_schema() order by ordinal_position`,
  );
  const constraints = await rowsOf<Named & { references: string | null }>(
    `select conrelid::regclass::text as table, 'CONSTRAINT ' || conname || ' ' || pg_get_constraintdef(oid) as def,
       nullif(confrelid, 0)::regclass::text as references
     from pg_constraint where connamespace = current_schema()::regnamespace and contype <> 'n' and conparentid = 0
     order by contype, conname`,
  );
  const others = await rowsOf<Named>(
    `select indrelid::regclass::text as table, pg_get_indexdef(indexrelid) as def from pg_index
     where indrelid::regclass::text in (select relname from pg_class where relnamespace = current_schema()::regnamespace)
       and not exists (select from pg_constraint where conindid = indexrelid)
       and not exists (select from pg_inherits where inhrelid = indexrelid)
     union all
     select tgrelid::regclass::text, pg_get_triggerdef(oid) from pg_trigger where not tgisinternal
     order by 1, 2`,
  );
  const functions = await rowsOf<Named>(
    `select pg_get_functiondef(oid) as def from pg_proc where pronamespace = current_schema()::regnamespace
     order by proname`,
  );
  const sequences = await rowsOf<{ name: string; owner: string }>(
    `select relname as name, refobjid::regclass || '.' || attname as owner from pg_class
       join pg_depend on objid = pg_class.oid and deptype = 'a'
       join pg_attribute on attrelid = refobjid and attnum = refobjsubid
     where relkind = 'S' and relnamespace = current_schema()::regnamespace order by 1`,
  );
  const own = <Row extends Named>(rows: Row[], name: string) => rows.filter(({ table }) => table === name);
  const described = (table: (typeof tables)[number]) => {
    const { name, by, parent, bounds, options } = table;
    const lines = [...(parent ? [] : own(columns, name)), ...own(constraints, name)].map(
      ({ def }) => `  ${def}`,
    );
    const body = lines.length > 0 ? ` (\n${lines.join(',\n')}\n)` : '';
    const head = `CREATE TABLE ${name}${parent ? ` PARTITION OF ${parent}` : ''}${body}`;
    const foot = `${parent ? ` ${bounds}` : ''}${by ? ` PARTITION BY ${by}` : ''}${options ? ` WITH (${options})` : ''}`;
    return [head + foot, ...own(others, name).map(({ def }) => def)].map((each) => `${each};\n`).join('');
  };
  const ours = sequences.filter(({ owner }) => isOurs(owner));
  return [
    ...ours.map(({ name }) => `CREATE SEQUENCE ${name};\n`),
    ...functions.map(({ def }) => `${def.trim()};\n`),
    ...inOrder(
      tables.filter(({ name }) => isOurs(name)),
      constraints,
    ).map(described),
    ...ours.map(({ name, owner }) => `ALTER SEQUENCE ${name} OWNED BY ${owner};\n`),
  ]
    .join('\n')
    .replaceAll(/\bpublic\.| ONLY\b/g, '');
}

/** Each table after those that it refers to. */
function inOrder<Table extends { name: string }>(
  tables: Table[],
  constraints: { table: string; references: string | null }[],
): Table[] {
  const made: Table[] = [];
  const isMade = (name: string | null) => name === null || made.some((table) => table.name === name);
  while (made.length < tables.length) {
    const next = tables.find(
      ({ name }) =>
        !isMade(name) &&
        constraints.every(
          ({ table, references }) => table !== name || references === name || isMade(references),
        ),
    );
    if (!next) throw new Error('tables refer to each other in a circle');
    made.push(next);
  }
  return made;
}
