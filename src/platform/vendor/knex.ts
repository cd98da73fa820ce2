/**
 * knex's SQLite client and transaction (`knex/lib/dialects/sqlite3`), and the connection behind a client. Read in knex 3.3.0.
 * knex has no option for the four things that Postern needs: a transaction that takes SQLite's write lock when it begins,
 * statements that are compiled once, transactions without an interface (16 KB) of their own, and a transaction on a connection
 * that the caller has.
 */
import { createRequire } from 'node:module';
import knex, { type Knex } from 'knex';
import { LRUCache } from 'lru-cache';

/** A connection of the package sqlite3. */
interface Connection {
  prepare(sql: string, done: (error: Error | null) => void): Statement;
}

interface Statement {
  all(values: unknown[], done: Done): void;
  run(values: unknown[], done: Done): void;
  finalize(): void;
}

type Done = (error: Error | null, rows?: unknown[]) => void;

/** The functions of a connection that knex calls for a query. */
interface QueryFunctions {
  all(sql: string, values: unknown[], done: Done): void;
  run(sql: string, values: unknown[], done: Done): void;
}

interface Query {
  sql: string;
  bindings: unknown[] | undefined;
}

interface PrivateClient {
  _query(connection: QueryFunctions | Connection, query: Query): Promise<Query>;
  destroyRawConnection(connection: Connection): Promise<void>;
  transaction(container: unknown, config: unknown, outer: unknown): unknown;
}

const require = createRequire(import.meta.url);
const Client: new (...args: unknown[]) => PrivateClient = require('knex/lib/dialects/sqlite3');
const Transaction: new (
  ...args: unknown[]
) => {
  query(connection: unknown, sql: string): unknown;
} = require('knex/lib/dialects/sqlite3/execution/sqlite-transaction');

/**
 * All our transactions write, so each takes the write lock when it begins. A plain BEGIN takes it at the first write, and a
 * transaction that has read before that fails at once, despite the busy timeout, if another process has written in between.
 */
class ImmediateTransaction extends Transaction {
  begin(connection: unknown) {
    return this.query(connection, 'BEGIN IMMEDIATE;');
  }
}

/** More than the number of statements with a constant text in the program. */
const maxStatements = 200;
/** A longer text has a placeholder for each of many values, and is seldom repeated. */
const maxTextLength = 2_000;

/** A statement keeps its values until it runs again. */
const maxKeptBytes = 256 * 1024;

function isWorthKeeping({ sql, bindings = [] }: Query): boolean {
  if (sql.length > maxTextLength) return false;
  let bytes = 0;
  for (const value of bindings) if (Buffer.isBuffer(value)) bytes += value.length;
  return bytes <= maxKeptBytes;
}

/** Prepared statements by connection, because knex creates the clients of transactions without calling the constructor. */
const prepared = new WeakMap<Connection, LRUCache<string, Statement>>();

function preparedOn(connection: Connection): LRUCache<string, Statement> {
  const known = prepared.get(connection);
  if (known) return known;
  const statements = new LRUCache<string, Statement>({
    max: maxStatements,
    dispose: (statement) => statement.finalize(),
  });
  prepared.set(connection, statements);
  return statements;
}

/** A statement that does not compile never calls back when it is run; `onError` gets the error instead. */
function prepare(connection: Connection, sql: string, onError: (error: Error) => void): Statement {
  const statements = preparedOn(connection);
  const known = statements.get(sql);
  if (known) return known;
  const statement = connection.prepare(sql, (error) => {
    if (error) onError(error);
    else statements.set(sql, statement);
  });
  return statement;
}

/** After some errors (full disk, read error) SQLite has already rolled back. The first error is to be reported, not this one. */
function ignoreIfRolledBack(error: Error, query: Query): Query {
  if (!/no transaction is active/.test(error.message)) throw error;
  return Object.assign(query, { response: [] });
}

export class SqliteClient extends Client {
  override transaction(container: unknown, config: unknown, outer: unknown) {
    return new ImmediateTransaction(this, container, config, outer);
  }

  override _query(connection: Connection, query: Query): Promise<Query> {
    const result = this.run(connection, query);
    if (query.sql === 'ROLLBACK') return result.catch((error) => ignoreIfRolledBack(error, query));
    // knex considers the transaction ended even if its COMMIT failed.
    if (query.sql === 'COMMIT;') return result.catch((error) => this.rollBack(connection, error));
    return result;
  }

  private async rollBack(connection: Connection, cause: Error): Promise<never> {
    await this._query(connection, { sql: 'ROLLBACK', bindings: [] });
    throw cause;
  }

  private run(connection: Connection, query: Query): Promise<Query> {
    if (!isWorthKeeping(query)) return super._query(connection, query);
    const functions: QueryFunctions = {
      all: (sql, values, done) => prepare(connection, sql, done).all(values, done),
      run: (sql, values, done) => prepare(connection, sql, done).run(values, done),
    };
    return super._query(functions, query).catch((error) => {
      // A statement that found the database locked is still active for SQLite, which then cannot commit.
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

/**
 * One transaction at a time on one interface that is created once, which gets the pool's connection for each transaction.
 * knex creates an interface for each, 16 KB that only a full garbage collection frees, and every mail waits during that.
 */
export function createTransact(db: Knex): <Result>(work: (trx: Knex) => Promise<Result>) => Promise<Result> {
  const { connection: _, ...config } = db.client.config;
  const trx = knex(config);
  // Listeners of `db` hear the statements.
  Object.assign(trx.client, { async releaseConnection() {}, emit: db.client.emit.bind(db.client) });
  return async (work) => {
    const connection = await db.client.acquireConnection();
    trx.client.acquireConnection = async () => connection;
    try {
      await trx.raw('BEGIN IMMEDIATE');
      try {
        const result = await work(trx);
        await trx.raw('COMMIT');
        return result;
      } catch (error) {
        await trx.raw('ROLLBACK');
        throw error;
      }
    } finally {
      trx.client.acquireConnection = refuseConnection;
      db.client.releaseConnection(connection);
    }
  };
}

/** A statement that the work did not wait for would be a transaction of its own. */
async function refuseConnection(): Promise<never> {
  throw new Error('the transaction has ended');
}

/** Runs `change` in a transaction on SQLite's connection, between the statements `before` and `after`, which are never prepared. */
export async function transactionBetween(
  db: Knex,
  { before, after }: { before: string; after: string },
  change: (trx: Knex.Transaction) => Promise<void>,
): Promise<void> {
  const connection = await db.client.acquireConnection();
  const exec = (sql: string) =>
    new Promise<void>((resolve, reject) => {
      connection.exec(sql, (error: Error | null) => (error ? reject(error) : resolve()));
    });
  try {
    await exec(before);
    await db.transaction(change, { connection } as never);
  } finally {
    await exec(after);
    await db.client.releaseConnection(connection);
  }
}
