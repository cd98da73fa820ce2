/**
 * The statements that run on a database, whoever in this process sent them: so a test can wait until what it started has
 * reached its end, which it cannot see otherwise.
 */
import { createRequire } from 'node:module';

/** Of the packages sqlite3 and pg. */
interface Connection {
  filename?: string;
  database?: string;
}

type Query = (connection: Connection, given: unknown) => Promise<unknown>;

const Client: { prototype: { query: Query } } = createRequire(import.meta.url)('knex/lib/client');
const running = new Map<string, number>();
const { query } = Client.prototype;

function count(name: string, by: number): void {
  running.set(name, (running.get(name) ?? 0) + by);
}

Client.prototype.query = async function (this: unknown, connection, given) {
  const name = connection.filename ?? connection.database ?? '';
  count(name, 1);
  try {
    return await query.call(this, connection, given);
  } finally {
    count(name, -1);
  }
};

/** `name`: an SQLite file, or the name of a PostgreSQL database. */
export const hasStatements = (name: string) => (running.get(name) ?? 0) > 0;
