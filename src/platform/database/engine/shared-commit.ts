/**
 * Lets transactions of different kinds share a commit. SQLite has one writer: acceptances and outcomes would wait for each
 * other and sync the disk once each. So all work that arrives while a transaction is open runs in the next one, one after
 * the other. On PostgreSQL, which has many writers, each work has its own transaction, and is done again if PostgreSQL
 * ended it because it and another one waited for each other.
 *
 * A work is done once or not at all, independently of the others: if the shared transaction fails, each is tried again in
 * its own. So a work must have no effect outside its transaction. Work that nothing else waits with may be one statement,
 * which is a transaction by itself, without BEGIN and COMMIT.
 */
import { createTransact } from '#platform/vendor/knex.ts';
import { type Db, isPostgres, type Trx } from './open.ts';

interface Waiting {
  work(trx: Trx): Promise<unknown>;
  asStatement(): Promise<unknown>;
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

interface Queue {
  transact: ReturnType<typeof createTransact>;
  waiting: Waiting[];
  isRunning: boolean;
  /** Called before each transaction; true: the callback adds work to it. */
  onBegin: (() => boolean)[];
}

const queues = new WeakMap<Db, Queue>();

function queueOf(db: Db): Queue {
  const queue = queues.get(db) ?? {
    transact: createTransact(db),
    waiting: [],
    isRunning: false,
    onBegin: [],
  };
  queues.set(db, queue);
  return queue;
}

/**
 * Calls `join` whenever a shared transaction is about to begin; work that it then adds in this turn of the event loop is done
 * in that one. It returns whether it will add some. Never called on PostgreSQL.
 */
export function beforeSharedCommit(db: Db, join: () => boolean): void {
  if (!isPostgres(db)) queueOf(db).onBegin.push(join);
}

/** `asStatement`: the work as one statement on SQLite; null if it cannot be one, and has then changed nothing. */
export function inSharedCommit<Result>(
  db: Db,
  work: (trx: Trx) => Promise<Result>,
  asStatement: () => Promise<Result | null> = async () => null,
): Promise<Result> {
  if (isPostgres(db)) return onPostgres(db, work);
  const queue = queueOf(db);
  return new Promise((resolve, reject) => {
    queue.waiting.push({ work, asStatement, resolve: (result) => resolve(result as Result), reject });
    if (!queue.isRunning) void run(queue);
  });
}

const maxTries = 5;
/** The code `deadlock_detected`; the transaction has been rolled back. */
const deadlockDetected = '40P01';

async function onPostgres<Result>(db: Db, work: (trx: Trx) => Promise<Result>): Promise<Result> {
  for (let tries = 1; ; tries++) {
    try {
      return await db.transaction(work);
    } catch (error) {
      if ((error as { code?: string }).code !== deadlockDetected || tries === maxTries) throw error;
    }
  }
}

async function run(queue: Queue): Promise<void> {
  queue.isRunning = true;
  while (queue.waiting.length > 0) {
    if (isJoined(queue)) await new Promise((resolve) => setImmediate(resolve));
    const works = queue.waiting.splice(0);
    if (!(await settle(queue, works))) for (const one of works) await settle(queue, [one]);
    // A caller that has just been answered may add more work in this turn of the event loop; it joins the next transaction.
    await new Promise<void>((resolve) => process.nextTick(resolve));
  }
  queue.isRunning = false;
}

/** Every one is asked: each call makes a group of work join. */
function isJoined({ onBegin }: Queue): boolean {
  return onBegin.map((join) => join()).includes(true);
}

/** False if a transaction of several works failed; they still have to be done. */
async function settle({ transact }: Queue, works: Waiting[]): Promise<boolean> {
  try {
    const inTransaction = async (trx: Db) => {
      const done: unknown[] = [];
      for (const { work } of works) done.push(await work(trx as Trx));
      return done;
    };
    const results = (await asStatement(works)) ?? (await transact(inTransaction));
    for (const [index, { resolve }] of works.entries()) resolve(results[index]);
    return true;
  } catch (error) {
    if (works.length > 1) return false;
    for (const { reject } of works) reject(error);
    return true;
  }
}

async function asStatement([work, ...others]: Waiting[]): Promise<unknown[] | null> {
  const result = others.length > 0 ? null : await work!.asStatement();
  return result === null ? null : [result];
}
