/**
 * Connections to PostgreSQL: what each is told when it is made, and how long we wait for it.
 *
 * A commit is on disk when it returns: a server, database or role may have synchronous_commit off, and would lose mail that
 * was answered 200. Any other value, which says what standbys have to have by then, stays as it is.
 *
 * A server waits for nothing much longer than its patience: not for a connection, not for a statement, not for a server
 * that has gone without saying so (a machine that lost its power, a network that drops packets), which would be silent
 * for hours. PostgreSQL itself gives up such statements and lets go of the locks of a node that has vanished. Without
 * patience given, as for the command line and for upgrades, a statement takes the time that it takes.
 *
 * A connection to a primary that has been demoted is dropped when its transaction is over: it would stay as it is, and be
 * refused every write, while a new one finds the new primary.
 */
import type { Socket } from 'node:net';
import knex, { type Knex } from 'knex';
import pg from 'pg';
import { isReadOnly } from './unavailable.ts';

const int8 = 20;

const keepAliveMs = 10_000;

interface Connection {
  connection: {
    stream: Socket;
    on(event: 'errorMessage', heard: (error: Error) => void): void;
    on(event: 'readyForQuery', heard: (message: { status: string }) => void): void;
  };
  readyForQuery: boolean;
  emit(event: 'error', error: Error): void;
  query(sql: string, done: (error: Error | null) => void): void;
}

type Done = (error: Error | null, connection: Connection) => void;

export interface PostgresTerms {
  timeoutMs: number | null;
  /** At most so many at once. */
  connections: number;
  habits: Pick<Knex.Config, 'log' | 'compileSqlOnError'>;
}

export function openPostgres(url: string, { timeoutMs, connections, habits }: PostgresTerms): Knex {
  const getTypeParser = (oid: number, format: 'text') =>
    oid === int8 ? Number : pg.types.getTypeParser(oid, format);
  const connection = {
    ...{ connectionString: url, types: { getTypeParser } },
    ...{ keepAlive: true, keepAliveInitialDelayMillis: keepAliveMs },
    ...(timeoutMs !== null && { connectionTimeoutMillis: timeoutMs / 2 }),
  };
  return knex({
    client: 'pg',
    connection: connection as Knex.PgConnectionConfig,
    ...(timeoutMs !== null && { acquireConnectionTimeout: timeoutMs / 2 }),
    pool: {
      ...{ min: 0, max: connections },
      afterCreate: timeoutMs === null ? durable : bounded(timeoutMs),
    },
    ...habits,
  });
}

/** Set in the session whatever it is, so that a server that is told `off` later changes nothing either. */
const beDurable = `select set_config('synchronous_commit', replace(current_setting('synchronous_commit'), 'off', 'on'), false)`;

function durable(connection: Connection, done: Done): void {
  connection.query(beDurable, (error) => done(error, connection));
}

function bounded(timeoutMs: number): (connection: Connection, done: Done) => void {
  const max = Math.round(timeoutMs);
  // The locks of a node that has vanished are let go before those who wait for them give up.
  const settings = {
    statement_timeout: max,
    idle_in_transaction_session_timeout: Math.round(max / 2),
    tcp_user_timeout: max,
  };
  const sql = Object.entries(settings)
    .map(([name, value]) => `set ${name} = ${value}`)
    .concat(beDurable)
    .join('; ');
  return (connection, done) => {
    const { stream } = connection.connection;
    dropWhenReadOnly(connection);
    stream.setTimeout(1.25 * max, () => {
      if (!connection.readyForQuery)
        stream.destroy(new Error(`PostgreSQL has been silent for ${1.25 * max} ms`));
    });
    connection.query(sql, (error) => done(error, connection));
  };
}

/** An error of the connection itself makes the pool give it to nobody any more. `I`: no transaction is under way. */
function dropWhenReadOnly(client: Connection): void {
  let refusal: Error | null = null;
  client.connection.on('errorMessage', (error) => {
    if (isReadOnly(error)) refusal = error;
  });
  client.connection.on('readyForQuery', ({ status }) => {
    if (refusal && status === 'I') client.emit('error', refusal);
  });
}
