/**
 * Runs statements of one transaction as one call. Their results are not read, and none sees what another one has written. Each
 * call of the driver costs more than a small statement: on SQLite it wakes another thread and then this one, on PostgreSQL it
 * is a round trip.
 *
 * SQLite has no procedures, so the statements are the body of a temporary trigger on a view: `insert into the view values (…)`
 * runs them. Without a transaction that call is one, and `raise(abort, …)` among the statements undoes them. On PostgreSQL they
 * are parts of a WITH. Foreign keys are checked after the last statement; but rows that others refer to come first, because
 * while a key is violated, SQLite looks through the referring table at each insert into the other one.
 */
import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { type Db, isPostgres, type Trx } from './open.ts';

/** Runs its statements by `trx.raw`, which returns nothing. */
export type Write = (trx: Trx) => Promise<unknown>;

export async function writeTogether(db: Db, writes: Write[]): Promise<void> {
  const statements = await collect(db, writes);
  if (statements.length === 0) return;
  const texts = statements.map(({ sql }) => sql);
  const values = statements.flatMap((one) => one.values) as never;
  if (isPostgres(db)) await db.raw(inOneStatement(texts), values);
  else await callProcedure(db, procedureOf(texts), values);
}

/**
 * On SQLite, undoes all statements, with this error, unless the one before has changed so many rows. It works only here: outside
 * of a trigger, `changes()` may count those of another caller on the connection.
 */
export const requireChanged =
  (count: number, error: string): Write =>
  (trx) =>
    trx.raw(`select raise(abort, '${error}') where changes() <> ?`, [count]);

function inOneStatement(texts: string[]): string {
  const last = texts.at(-1)!;
  const others = texts.slice(0, -1).map((sql, index) => `write${index} as (${sql})`);
  return others.length === 0 ? last : `with ${others.join(',\n')}\n${last}`;
}

async function callProcedure(db: Db, procedure: Procedure, values: never[]): Promise<void> {
  const call = () => db.raw(`insert into ${procedure.name} values (${values.map(() => '?')})`, values);
  try {
    await call();
  } catch (error) {
    // The first call on this connection, or the transaction that created it was rolled back, or its creation failed half-way.
    if (!isMissing(error, procedure.name)) throw error;
    await db.raw(procedure.view);
    await db.raw(procedure.trigger);
    await call();
  }
}

interface Statement {
  sql: string;
  values: unknown[];
}

/** The statements that the writes would run. */
async function collect({ client }: Db, writes: Write[]): Promise<Statement[]> {
  const statements: Statement[] = [];
  const raw = async (sql: string, values: unknown[]) => {
    statements.push({ sql, values });
    return [];
  };
  for (const write of writes) await write({ client, raw } as unknown as Trx);
  return statements;
}

interface Procedure {
  name: string;
  /** The statements that create it. */
  view: string;
  trigger: string;
}

/** A caller has few combinations of statements, because some are left out if they have no rows. */
const procedures = new LRUCache<string, Procedure>({ max: 200 });

function procedureOf(statements: string[]): Procedure {
  const text = statements.join(';\n');
  const procedure = procedures.get(text) ?? newProcedure(text);
  procedures.set(text, procedure);
  return procedure;
}

/** The same statements always have the same name. A placeholder `?` becomes a column of the view. */
function newProcedure(text: string): Procedure {
  const name = `together_${hash('sha256', text).slice(0, 16)}`;
  let count = 0;
  const body = text.replace(/\?/g, () => `new.p${++count}`);
  const columns = Array.from({ length: count }, (_, index) => `null as p${index + 1}`);
  return {
    name,
    view: `create temp view if not exists ${name} as select ${columns}`,
    trigger: `create temp trigger if not exists ${name}_run instead of insert on ${name} begin ${body}; end`,
  };
}

function isMissing(error: unknown, name: string): boolean {
  const { message } = error as Error;
  return (
    message.includes(`no such table: ${name}`) ||
    message.includes(`cannot modify ${name} because it is a view`)
  );
}
