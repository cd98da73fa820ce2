/**
 * The statements that run on a database, whoever in this process sent them: so a test can wait until what it started has
 * reached its end, which it cannot see otherwise, and count what a mail costs.
 */
import { createRequire } from 'node:module';

/** Of the packages sqlite3 and pg. */
interface Connection {
  filename?: string;
  database?: string;
}

type Query = (connection: Connection, given: string | { sql: string }) => Promise<unknown>;

const Client: { prototype: { query: Query } } = createRequire(import.meta.url)('knex/lib/client');
const running = new Map<string, number>();
const counted = new Map<string, Map<string, number>>();
const { query } = Client.prototype;

function count(name: string, by: number): void {
  running.set(name, (running.get(name) ?? 0) + by);
}

Client.prototype.query = async function (this: unknown, connection, given) {
  const name = connection.filename ?? connection.database ?? '';
  count(name, 1);
  const texts = counted.get(name);
  const text = typeof given === 'string' ? given : given.sql;
  texts?.set(text, (texts.get(text) ?? 0) + 1);
  try {
    return await query.call(this, connection, given);
  } finally {
    count(name, -1);
  }
};

/** `name`: an SQLite file, or the name of a PostgreSQL database. */
export const hasStatements = (name: string) => (running.get(name) ?? 0) > 0;

/** Runs `act` and returns how often each statement was run meanwhile. */
export async function countStatements(name: string, act: () => Promise<void>): Promise<Map<string, number>> {
  const texts = new Map<string, number>();
  counted.set(name, texts);
  await act();
  counted.delete(name);
  return texts;
}
