/**
 * PostgreSQL's side of a move: checks the target and inserts the rows. The progress of each table is committed with its rows,
 * in the table `postern_move`, so an interrupted move continues after the last row and inserts none twice.
 */
import { anyConnection, senderConnection } from '../../../cluster/notify.ts';
import { DatabaseError, type Db, type Trx } from '../../engine/open.ts';
import { partsOf } from '../../engine/parts-of.ts';
import { moveTable } from '../moved-marker.ts';
import { quoted, type Value } from './column-values.ts';
import { type Table, targetTables } from './move-plan.ts';
import { type Batch, beforeAll, isSameKey, type Key } from './sqlite-source.ts';

/** The target's record of a move into it. */
interface MoveRecord {
  id: string;
  source: string;
  finishedAt: number | null;
}

/** The progress of a table. */
interface Reached {
  after: Key;
  rows: number;
}

/** "move" in ASCII: the advisory lock for starting a move. */
const advisoryLock = 0x6d6f7665;

/** Tables that migrations and the first start fill in a database that has not been used yet. */
const filledAtStart = ['event_readers', 'one_time_tokens'];

/** Null if no move into this database has begun. */
export async function readRecord(target: Db): Promise<MoveRecord | null> {
  const { rows } = await target.raw('select to_regclass(?) is not null as "isThere"', [moveTable]);
  if (!rows[0].isThere) return null;
  return (await target(moveTable).first('id', 'source', 'finished_at as finishedAt')) ?? null;
}

/** Rejects if the target has data or a running server; changes nothing. */
export async function requireUnused(target: Db): Promise<void> {
  await requireNoServer(target);
  const { rows } = await target.raw('show server_encoding');
  if (rows[0].server_encoding !== 'UTF8') {
    const how = 'create it with `createdb --encoding=UTF8 --template=template0 NAME`';
    throw new DatabaseError(`the target is encoded in ${rows[0].server_encoding}, mail needs UTF8; ${how}`);
  }
  const used = (await filled(target)).filter((name) => !filledAtStart.includes(name));
  if (used.length > 0) {
    throw new DatabaseError(
      `the target is not empty: there are rows in ${used.join(', ')}. Use an empty database: a move does not add to existing data`,
    );
  }
}

/** A server on the target would send mail before the move is finished. */
export async function requireNoServer(target: Db): Promise<void> {
  const { rows } = await target.raw(
    'select 1 from pg_stat_activity where datname = current_database() and application_name in (?, ?) limit 1',
    [anyConnection, senderConnection],
  );
  if (rows.length > 0)
    throw new DatabaseError('a Postern is running on the target; stop it until the move is finished');
}

async function filled(target: Db): Promise<string[]> {
  const names: string[] = [];
  for (const { name } of await targetTables(target)) {
    const { rows } = await target.raw(`select exists (select 1 from ${quoted(name)}) as "isFilled"`);
    if (rows[0].isFilled) names.push(name);
  }
  return names;
}

/** Claims the target for this move; servers refuse to use it until the move is finished. */
export async function claimTarget(
  target: Db,
  { id, source, now }: { id: string; source: string; now: number },
): Promise<void> {
  await target.transaction(async (trx) => {
    await trx.raw('select pg_advisory_xact_lock(?)', [advisoryLock]);
    const record = await readRecord(trx);
    if (record?.id === id) return;
    if (record) throw new DatabaseError('another move into this database has begun at the same time');
    await requireUnused(trx);
    for (const name of await filled(trx)) await trx.raw(`delete from ${quoted(name)}`);
    await trx.schema.createTable(moveTable, (table) => {
      table.text('id').notNullable().primary();
      table.text('source').notNullable();
      table.bigInteger('begun_at').notNullable();
      table.bigInteger('finished_at');
      // JSON: the progress of each table.
      table.text('reached').notNullable();
    });
    await trx(moveTable).insert({ id, source, begun_at: now, reached: '{}' });
  });
}

export async function readReached(target: Db, { name }: Table): Promise<Reached> {
  const { reached } = await target(moveTable).first('reached');
  return JSON.parse(reached)[name] ?? { after: beforeAll, rows: 0 };
}

/**
 * Inserts the batch that was read after `after`, and returns the table's progress. If the table is not at `after`, nothing is
 * inserted: an earlier commit, whose answer was lost, has succeeded.
 */
export async function insertBatch(
  target: Db,
  table: Table,
  after: Key,
  { rows, last }: Batch,
  beforeCommit: () => void,
): Promise<Reached> {
  return target.transaction(async (trx) => {
    // Waits for the transaction of a killed process that PostgreSQL has not ended yet.
    const { reached } = await trx(moveTable).forUpdate().first('reached');
    const all: { [table: string]: Reached } = JSON.parse(reached);
    const before = all[table.name] ?? { after: beforeAll, rows: 0 };
    if (!isSameKey(before.after, after)) return before;
    await insert(trx, table, rows);
    const now = { after: last!, rows: before.rows + rows.length };
    await trx(moveTable).update({ reached: JSON.stringify({ ...all, [table.name]: now }) });
    beforeCommit();
    return now;
  });
}

/** PostgreSQL takes at most 65,535 values per statement. */
const maxValues = 20_000;

async function insert(trx: Trx, { name, columns }: Table, rows: Value[][]): Promise<void> {
  const names = columns.map((column) => quoted(column.name)).join(', ');
  const into = `insert into ${quoted(name)} (${names})`;
  if (!columns.some(({ type }) => type === 'bytea')) {
    const objects = rows.map((row) =>
      Object.fromEntries(columns.map((column, at) => [column.name, row[at]])),
    );
    await trx.raw(`${into} select ${names} from json_populate_recordset(null::${quoted(name)}, ?::json)`, [
      JSON.stringify(objects),
    ]);
    return;
  }
  // JSON cannot contain bytes.
  const tuple = `(${columns.map(() => '?').join(', ')})`;
  for (const part of partsOf(rows, Math.max(1, Math.floor(maxValues / columns.length))))
    await trx.raw(`${into} values ${part.map(() => tuple).join(', ')}`, part.flat() as string[]);
}

/** New numbers come after all numbers of SQLite, including those of deleted rows, because readers of events remember them. */
export async function setSequences(target: Db, tables: Table[], given: Map<string, number>): Promise<void> {
  const { rows } = await target.raw(
    `select t.relname as "table", a.attname as "column", s.oid::regclass::text as sequence
     from pg_class s
       join pg_depend d on d.refobjid = s.oid and d.refclassid = 'pg_class'::regclass and d.classid = 'pg_attrdef'::regclass
       join pg_attrdef f on f.oid = d.objid
       join pg_attribute a on a.attrelid = f.adrelid and a.attnum = f.adnum
       join pg_class t on t.oid = a.attrelid
     where s.relkind = 'S' and t.relnamespace = current_schema()::regnamespace and not t.relispartition`,
  );
  const sequences: { table: string; column: string; sequence: string }[] = rows;
  for (const { name } of tables) {
    const own = sequences.filter(({ table }) => table === name);
    if (own.length === 0 && given.has(name))
      throw new DatabaseError(`SQLite numbers the rows of ${name}, and PostgreSQL has no sequence for it`);
    for (const { column, sequence } of own) {
      const max = await target(name).max(`${column} as most`).first();
      // One more, because no row may have the sequence's last value (db/schema/migrations/005-events.ts).
      const next = Math.max(max?.max ?? 0, given.get(name) ?? 0) + 1;
      await target.raw('select setval(?::regclass, ?)', [sequence, next]);
    }
  }
}

/** Collects statistics for the query planner before a server starts. */
export async function analyze(target: Db, tables: Table[]): Promise<void> {
  for (const { name } of tables) await target.raw(`analyze ${quoted(name)}`);
}

export async function finishTarget(target: Db, id: string, now: number): Promise<void> {
  await target(moveTable).where({ id }).whereNull('finished_at').update({ finished_at: now });
}
