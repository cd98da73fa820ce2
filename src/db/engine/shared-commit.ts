/**
 * Transactions of different kinds that share a commit. SQLite has one writer: acceptances and outcomes would wait for
 * each other and sync the disk once each; so what comes while a transaction is open goes together into the next one,
 * each work after the other. PostgreSQL has many writers, and there each has a transaction of its own.
 *
 * A work is done once or not at all, whatever becomes of its company: where the shared transaction fails, each is tried
 * again in one of its own. It has to be written so that it can be: all that it does, it does in its transaction.
 */
import { type Db, isPostgres, type Trx } from './open.ts';
import { createTransact, type Transact } from './transactions.ts';

interface Waiting {
  work(trx: Trx): Promise<unknown>;
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

interface Queue {
  transact: Transact;
  waiting: Waiting[];
  isRunning: boolean;
}

const queues = new WeakMap<Db, Queue>();

export function inSharedCommit<Result>(db: Db, work: (trx: Trx) => Promise<Result>): Promise<Result> {
  if (isPostgres(db)) return db.transaction(work);
  const queue = queues.get(db) ?? { transact: createTransact(db), waiting: [], isRunning: false };
  queues.set(db, queue);
  return new Promise((resolve, reject) => {
    queue.waiting.push({ work, resolve: (result) => resolve(result as Result), reject });
    if (!queue.isRunning) void run(queue);
  });
}

async function run(queue: Queue): Promise<void> {
  queue.isRunning = true;
  while (queue.waiting.length > 0) {
    const works = queue.waiting.splice(0);
    if (!(await settle(queue, works))) for (const one of works) await settle(queue, [one]);
    // Whoever was answered and has more to do at once says so in this turn of the event loop, and rides along.
    await new Promise<void>((resolve) => process.nextTick(resolve));
  }
  queue.isRunning = false;
}

/** False where a transaction of several failed and they still wait. */
async function settle({ transact }: Queue, works: Waiting[]): Promise<boolean> {
  try {
    const results = await transact(async (trx) => {
      const done: unknown[] = [];
      for (const { work } of works) done.push(await work(trx));
      return done;
    });
    for (const [index, { resolve }] of works.entries()) resolve(results[index]);
    return true;
  } catch (error) {
    if (works.length > 1) return false;
    for (const { reject } of works) reject(error);
    return true;
  }
}
