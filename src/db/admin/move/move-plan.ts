/**
 * Plans a move: the tables in an order that satisfies their foreign keys, their columns and types. All of it is read from the
 * two databases, so no table can be forgotten here. If they do not have the same tables and columns, planning fails.
 */

import { DatabaseError, type Db, type Trx } from '../../engine/open.ts';
import { migrationsOf } from '../../schema/migrate.ts';
import { moveTable } from '../moved-marker.ts';
import { type Column, canMove } from './column-values.ts';

export interface Table {
  name: string;
  /** Ordered by name. */
  columns: Column[];
  /** The columns by whose order SQLite's side is read: its rowid, or the primary key of a table without. */
  key: readonly string[];
}

const isOurs = (name: string) => !/^(knex_|sqlite_)/.test(name) && name !== moveTable;

export async function planMove(source: Trx, target: Db): Promise<Table[]> {
  await requireSameVersion(source, target);
  const [here, there] = [await sourceTables(source), await targetTables(target)];
  const faults = differences(here, there);
  for (const { name, columns } of there) {
    for (const column of columns.filter((each) => !canMove(each)))
      faults.push(`${name}.${column.name} is of type ${column.type}, which this program cannot move`);
  }
  if (faults.length > 0) throw new DatabaseError(`the two databases differ: ${faults.join('; ')}`);
  const keys = new Map(here.map(({ name, key }) => [name, key]));
  return inOrder(
    source,
    there.map((table) => ({ ...table, key: keys.get(table.name)! })),
  );
}

export async function targetTables(target: Db): Promise<Omit<Table, 'key'>[]> {
  const { rows } = await target.raw(
    `select t.relname as "table", c.column_name as name, c.data_type as type
     from pg_class t join information_schema.columns c
       on c.table_schema = current_schema() and c.table_name = t.relname
     where t.relnamespace = current_schema()::regnamespace and t.relkind in ('r', 'p') and not t.relispartition
       and not exists (select 1 from pg_depend d where d.objid = t.oid and d.classid = 'pg_class'::regclass and d.deptype = 'e')
     order by t.relname, c.column_name collate "C"`,
  );
  const tables = new Map<string, Column[]>();
  for (const { table, name, type } of rows as { table: string; name: string; type: string }[]) {
    if (!isOurs(table)) continue;
    if (!tables.has(table)) tables.set(table, []);
    tables.get(table)!.push({ name, type });
  }
  return [...tables].map(([name, columns]) => ({ name, columns }));
}

async function sourceTables(source: Trx): Promise<(Named & Pick<Table, 'key'>)[]> {
  const found: { name: string; wr: number }[] = await source.raw(
    "select name, wr from pragma_table_list where schema = 'main' and type = 'table'",
  );
  const tables = [];
  for (const { name, wr } of found.filter((each) => isOurs(each.name))) {
    const columns: { name: string; pk: number }[] = await source.raw(
      'select name, pk from pragma_table_info(?)',
      [name],
    );
    const primary = columns.filter(({ pk }) => pk > 0).toSorted((a, b) => a.pk - b.pk);
    tables.push({ name, columns, key: wr ? primary.map((column) => column.name) : ['rowid'] });
  }
  return tables;
}

type Named = { name: string; columns: { name: string }[] };

function differences(here: Named[], there: Named[]): string[] {
  return [...missing(here, there, 'PostgreSQL'), ...missing(there, here, 'SQLite')];
}

function missing(those: Named[], these: Named[], where: string): string[] {
  return those.flatMap(({ name, columns }) => {
    const same = these.find((table) => table.name === name);
    if (!same) return [`${where} has no table ${name}`];
    return columns
      .filter((column) => !same.columns.some((other) => other.name === column.name))
      .map((column) => `${where} has no ${name}.${column.name}`);
  });
}

async function requireSameVersion(source: Trx, target: Db): Promise<void> {
  const [here, there] = [await migrationsOf(source), await migrationsOf(target)];
  const last = (done: string[]) => done.at(-1) ?? 'nothing';
  if (here.done.join() !== there.done.join())
    throw new DatabaseError(`SQLite is at ${last(here.done)}, PostgreSQL at ${last(there.done)}`);
}

/** Puts each table after those that it refers to. */
async function inOrder(source: Trx, tables: Table[]): Promise<Table[]> {
  const waiting = new Map<string, { table: Table; needs: string[] }>();
  for (const table of tables) {
    const keys: { table: string }[] = await source.raw('select "table" from pragma_foreign_key_list(?)', [
      table.name,
    ]);
    const needs = keys.map((key) => key.table).filter((name) => name !== table.name);
    waiting.set(table.name, { table, needs });
  }
  const ordered: Table[] = [];
  while (waiting.size > 0) {
    const ready = [...waiting.values()].filter(({ needs }) => !needs.some((name) => waiting.has(name)));
    if (ready.length === 0)
      throw new DatabaseError(
        `these tables refer to each other in a circle: ${[...waiting.keys()].join(', ')}`,
      );
    for (const { table } of ready) {
      ordered.push(table);
      waiting.delete(table.name);
    }
  }
  return ordered;
}
