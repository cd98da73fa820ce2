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
import knex, { type Knex } from 'knex';
import pg, { type Client } from 'pg';
import { dropAfter, endWhenSilent } from '#platform/vendor/pg.ts';
import { isReadOnly } from './unavailable.ts';

const int8 = 20;

const keepAliveMs = 10_000;

type Done = (error: Error | null, client: Client) => void;

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
      // By default it looks each second for idle connections to close.
      reapIntervalMillis: 10_000,
      // With the default of half a minute a server at rest would open some each minute.
      idleTimeoutMillis: 5 * 60_000,
      afterCreate: timeoutMs === null ? durable : withTimeouts(timeoutMs),
    },
    ...quiet,
  });
}

/** Always set in the session, so that a later change of the server's setting to `off` has no effect either. */
const setDurable = `select set_config('synchronous_commit', replace(current_setting('synchronous_commit'), 'off', 'on'), false)`;

function durable(client: Client, done: Done): void {
  client.query(setDurable, (error) => done(error, client));
}

function withTimeouts(timeoutMs: number): (client: Client, done: Done) => void {
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
  return (client, done) => {
    dropAfter(client, isReadOnly);
    endWhenSilent(client, 1.25 * max);
    client.query(sql, (error) => done(error, client));
  };
}
