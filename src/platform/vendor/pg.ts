/**
 * The connection and the socket behind a client of pg. Read in pg 8.23.1.
 * pg has no public way to end a connection whose server is silent during a query (its own timeouts abort queries, but leave
 * the connection in the pool), or to see whether a transaction is still open after an error.
 */
import type { Socket } from 'node:net';
import type { Client } from 'pg';

interface PrivateParts {
  connection: {
    stream: Socket;
    on(event: 'errorMessage', listener: (error: Error) => void): void;
    on(event: 'readyForQuery', listener: (message: { status: string }) => void): void;
  };
  /** False while a query is in progress. */
  readyForQuery: boolean;
}

const privateParts = (client: Client) => client as unknown as PrivateParts;

/** Ends the connection if the server sends nothing for `ms` during a query. */
export function endWhenSilent(client: Client, ms: number): void {
  const parts = privateParts(client);
  const { stream } = parts.connection;
  stream.setTimeout(ms);
  stream.on('timeout', () => {
    // Node's socket timeout fires once: without a new one, a connection that was idle would have none.
    if (parts.readyForQuery) stream.setTimeout(ms);
    else stream.destroy(new Error(`PostgreSQL has been silent for ${ms} ms`));
  });
}

/** After an error that `isFatal` accepts, the pool drops the connection, once no transaction is open on it (status `I`). */
export function dropAfter(client: Client, isFatal: (error: Error) => boolean): void {
  const { connection } = privateParts(client);
  let fatal: Error | null = null;
  connection.on('errorMessage', (error) => {
    if (isFatal(error)) fatal = error;
  });
  connection.on('readyForQuery', ({ status }) => {
    if (fatal && status === 'I') client.emit('error', fatal);
  });
}
