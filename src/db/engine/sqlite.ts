/**
 * knex's SQLite client with two habits of ours: a transaction takes the write lock when it begins, and a statement
 * that comes again is not compiled again.
 */
import { createRequire } from 'node:module';
import { LRUCache } from 'lru-cache';

/** What we use of sqlite3: a connection that runs texts and prepares statements, and a statement that runs. */
interface Connection {
  prepare(sql: string, done: (error: Error | null) => void): Statement;
}

interface Statement {
  all(values: unknown[], done: Done): void;
  run(values: unknown[], done: Done): void;
  finalize(): void;
}

type Done = (error: Error | null, rows?: unknown[]) => void;

/** What knex asks of a connection. */
interface Runs {
  all(sql: string, values: unknown[], done: Done): void;
  run(sql: string, values: unknown[], done: Done): void;
}

interface Query {
  sql: string;
  bindings: unknown[] | undefined;
}

interface Insides {
  _query(connection: Runs | Connection, query: Query): Promise<Query>;
  destroyRawConnection(connection: Connection): Promise<void>;
  transaction(container: unknown, config: unknown, outer: unknown): unknown;
}

const require = createRequire(import.meta.url);
const Client: new (...args: unknown[]) => Insides = require('knex/lib/dialects/sqlite3');
const Transaction: new (
  ...args: unknown[]
) => {
  query(connection: unknown, sql: string): unknown;
} = require('knex/lib/dialects/sqlite3/execution/sqlite-transaction');

/**
 * Every transaction of ours writes, so each takes SQLite's write lock when it begins. A plain BEGIN would take it at
 * the first write, and a transaction that had read before that fails at once, whatever the busy timeout, when
 * another process has written in between.
 */
class ImmediateTransaction extends Transaction {
  begin(connection: unknown) {
    return this.query(connection, 'BEGIN IMMEDIATE;');
  }
}

/** More than the program has of statements whose text is always the same. */
const maxStatements = 200;
/** A longer text has a placeholder for each of many values, and seldom comes again. */
const longestText = 2_000;

/** A statement holds its values until it is run again: not one with a message among them. */
function isWorthKeeping({ sql, bindings = [] }: Query): boolean {
  return sql.length <= longestText && !bindings.some(Buffer.isBuffer);
}

/** knex makes its clients of transactions without a constructor: what is prepared is known by the connection. */
const prepared = new WeakMap<Connection, LRUCache<string, Statement>>();

function preparedOn(connection: Connection): LRUCache<string, Statement> {
  const known = prepared.get(connection);
  if (known) return known;
  const kept = new LRUCache<string, Statement>({
    max: maxStatements,
    dispose: (statement) => statement.finalize(),
  });
  prepared.set(connection, kept);
  return kept;
}

/** `onFailed` hears of a text that does not compile; what is asked of such a statement is never answered. */
function prepare(connection: Connection, sql: string, onFailed: (error: Error) => void): Statement {
  const kept = preparedOn(connection);
  const known = kept.get(sql);
  if (known) return known;
  const statement = connection.prepare(sql, (error) => {
    if (error) onFailed(error);
    else kept.set(sql, statement);
  });
  return statement;
}

/** Of some errors (the disk is full, it cannot be read) SQLite rolls back by itself: those are to be told, and not this one. */
function unlessOver(error: Error, query: Query): Query {
  if (!/no transaction is active/.test(error.message)) throw error;
  return Object.assign(query, { response: [] });
}

export class SqliteClient extends Client {
  override transaction(container: unknown, config: unknown, outer: unknown) {
    return new ImmediateTransaction(this, container, config, outer);
  }

  override _query(connection: Connection, query: Query): Promise<Query> {
    const ran = this.run(connection, query);
    if (query.sql === 'ROLLBACK') return ran.catch((error) => unlessOver(error, query));
    // knex takes a transaction for ended whatever came of this.
    if (query.sql === 'COMMIT;') return ran.catch((error) => this.rollBack(connection, error));
    return ran;
  }

  private async rollBack(connection: Connection, cause: Error): Promise<never> {
    await this._query(connection, { sql: 'ROLLBACK', bindings: [] });
    throw cause;
  }

  private run(connection: Connection, query: Query): Promise<Query> {
    if (!isWorthKeeping(query)) return super._query(connection, query);
    const runs: Runs = {
      all: (sql, values, done) => prepare(connection, sql, done).all(values, done),
      run: (sql, values, done) => prepare(connection, sql, done).run(values, done),
    };
    return super._query(runs, query).catch((error) => {
      // One that found the database locked is still at work to SQLite, which commits nothing beside it.
      preparedOn(connection).delete(query.sql);
      throw error;
    });
  }

  /** SQLite does not close a connection that has statements. */
  override async destroyRawConnection(connection: Connection): Promise<void> {
    preparedOn(connection).clear();
    await super.destroyRawConnection(connection);
  }
}
