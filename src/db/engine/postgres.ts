/**
 * Connections to PostgreSQL: their session settings and timeouts.
 *
 * A commit is on disk when it returns, even if the server, database or role has synchronous_commit off, which could lose mail
 * that was answered with 200. Other values, which are about standbys, stay.
 *
 * With a timeout, no connection or statement takes much longer, also if the machine has lost power or the network drops
 * packets; PostgreSQL then aborts the statements and releases the locks of a dead node. The command line and upgrades use none.
 *
 * A connection to a demoted primary is closed after its transaction, because it would refuse all writes; a new connection
 * finds the new primary.
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
    on(event: 'errorMessage', listener: (error: Error) => void): void;
    on(event: 'readyForQuery', listener: (message: { status: string }) => void): void;
  };
  readyForQuery: boolean;
  emit(event: 'error', error: Error): void;
  query(sql: string, done: (error: Error | null) => void): void;
}

type Done = (error: Error | null, connection: Connection) => void;

export interface PostgresTerms {
  timeoutMs: number | null;
  /** Maximum number of connections. */
  connections: number;
  quiet: Pick<Knex.Config, 'log' | 'compileSqlOnError'>;
}

export function openPostgres(url: string, { timeoutMs, connections, quiet }: PostgresTerms): Knex {
  const getTypeParser = (oid: number, format: 'text') =>
    oid === int8 ? Number : pg.types.getTypeParser(oid, format);
  const connection = {
    connectionString: url,
    types: { getTypeParser },
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveMs,
    ...(timeoutMs !== null && { connectionTimeoutMillis: timeoutMs / 2 }),
  };
  return knex({
    client: 'pg',
    connection: connection as Knex.PgConnectionConfig,
    ...(timeoutMs !== null && { acquireConnectionTimeout: timeoutMs / 2 }),
    pool: {
      min: 0,
      max: connections,
      afterCreate: timeoutMs === null ? durable : bounded(timeoutMs),
    },
    ...quiet,
  });
}

/** Always set in the session, so that a later change of the server's setting to `off` has no effect either. */
const setDurable = `select set_config('synchronous_commit', replace(current_setting('synchronous_commit'), 'off', 'on'), false)`;

function durable(connection: Connection, done: Done): void {
  connection.query(setDurable, (error) => done(error, connection));
}

function bounded(timeoutMs: number): (connection: Connection, done: Done) => void {
  const max = Math.round(timeoutMs);
  // Locks of a dead node are released before the statements that wait for them time out.
  const settings = {
    statement_timeout: max,
    idle_in_transaction_session_timeout: Math.round(max / 2),
    tcp_user_timeout: max,
  };
  const sql = Object.entries(settings)
    .map(([name, value]) => `set ${name} = ${value}`)
    .concat(setDurable)
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

/** After an error of the connection itself, the pool does not use it again. Status `I`: no transaction is open. */
function dropWhenReadOnly(client: Connection): void {
  let refusal: Error | null = null;
  client.connection.on('errorMessage', (error) => {
    if (isReadOnly(error)) refusal = error;
  });
  client.connection.on('readyForQuery', ({ status }) => {
    if (refusal && status === 'I') client.emit('error', refusal);
  });
}
