/**
 * SQLite transactions that follow each other closely. knex makes a whole interface of its own for each transaction, 16 KB
 * that are not gone before V8 looks through all memory, and while it does every mail waits. Here there is one interface,
 * which is given the connection for as long as a transaction lasts.
 */
import knex, { type Knex } from 'knex';
import type { Db, Trx } from './open.ts';

/** As `db.transaction`, one at a time: the next is begun when the last has ended. */
export type Transact = <Result>(work: (trx: Trx) => Promise<Result>) => Promise<Result>;

export function createTransact(db: Db): Transact {
  const trx = withoutPool(db) as Trx;
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
      trx.client.acquireConnection = refuse;
      db.client.releaseConnection(connection);
    }
  };
}

/** A statement that nobody has waited for would be a transaction of its own. */
async function refuse(): Promise<never> {
  throw new Error('the transaction has ended');
}

/** What happens on it is told on `db`. */
function withoutPool({ client }: Db): Knex {
  const { connection: _, ...config } = client.config;
  const pinned = knex(config);
  Object.assign(pinned.client, {
    async releaseConnection() {},
    emit: client.emit.bind(client),
  });
  return pinned;
}
