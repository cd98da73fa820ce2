/** Works that come while a transaction is open share the next one, and each is done once or not at all. */
import test, { type ExecutionContext } from 'ava';
import { type DatabaseKind, kinds } from '#lab/database/databases.ts';
import { openQueue } from '#lab/database/queue-rows.ts';
import { groupCommit } from '#platform/database/engine/group-commit.ts';
import type { Trx } from '#platform/database/engine/open.ts';
import { beforeSharedCommit, inSharedCommit } from '#platform/database/engine/shared-commit.ts';

const insert = (trx: Trx, name: string) =>
  trx('learned').insert({ kind: 'test', name, value: '1', expires_at: 1 });

async function ready(t: ExecutionContext, kind: DatabaseKind) {
  const { db } = await openQueue(t, kind);
  let begun = 0;
  db.on('query', ({ sql }) => {
    if (/^begin/i.test(sql)) begun += 1;
  });
  /** For each work which transaction it was in. */
  const transactions: number[] = [];
  /** Inserts a row of this name; fails after that if it is to. */
  const add = (name: string, failure?: Error) =>
    inSharedCommit(db, async (trx) => {
      transactions.push(begun);
      await insert(trx, name);
      if (failure) throw failure;
      return name;
    });
  const names = () => db('learned').orderBy('name').pluck('name');
  return { db, transactions, add, names };
}

for (const kind of kinds) {
  test(`${kind}: works that share a commit have each their own answer, and all are kept`, async (t) => {
    const { add, names } = await ready(t, kind);
    t.deepEqual(await Promise.all(['a', 'b', 'c'].map((name) => add(name))), ['a', 'b', 'c']);
    t.deepEqual(await names(), ['a', 'b', 'c']);
  });

  test(`${kind}: a work that fails leaves nothing, and the others of its commit are kept`, async (t) => {
    const { add, names } = await ready(t, kind);
    const all = await Promise.allSettled([add('a'), add('b'), add('c', new Error('poison')), add('d')]);
    t.deepEqual(
      all.map((one) => (one.status === 'fulfilled' ? one.value : one.reason.message)),
      ['a', 'b', 'poison', 'd'],
    );
    t.deepEqual(await names(), ['a', 'b', 'd']);
    t.is(await add('e'), 'e', 'and the next are not harmed');
  });
}

test('SQLite: works that come while a transaction is open share the next', async (t) => {
  const { add, transactions } = await ready(t, 'sqlite');
  await Promise.all(['a', 'b', 'c'].map((name) => add(name)));
  t.deepEqual(transactions, [1, 2, 2]);
});

test('SQLite: a caller that is answered and goes on at once shares the transaction of those who wait', async (t) => {
  const { add, transactions } = await ready(t, 'sqlite');
  const twice = add('a').then(() => add('c'));
  await Promise.all([twice, add('b')]);
  t.deepEqual(transactions, [1, 2, 2]);
});

test('SQLite: a transaction that cannot begin fails each work in it, and the next begins', async (t) => {
  const { add, db, names } = await ready(t, 'sqlite');
  await db.raw("create temp trigger full before insert on learned begin select raise(rollback, 'full'); end");
  const all = await Promise.allSettled([add('a'), add('b'), add('c')]);
  t.true(all.every(({ status }) => status === 'rejected'));
  await db.raw('drop trigger full');
  await add('d');
  t.deepEqual(await names(), ['d']);
});

test('SQLite: a statement that comes after its transaction has ended is refused', async (t) => {
  const { db, names } = await ready(t, 'sqlite');
  const kept = await inSharedCommit(db, async (trx) => ({ trx }));
  await t.throwsAsync(insert(kept.trx, 'late'), { message: /has ended/ });
  t.deepEqual(await names(), []);
});

test('PostgreSQL: of two transactions that wait for each other, the one that is ended is done again', async (t) => {
  const { db, add } = await ready(t, 'postgres');
  for (const name of ['a', 'b']) await add(name);
  const haveFirst = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let runs = 0;
  const update = (order: string[], own: number) =>
    inSharedCommit(db, async (trx) => {
      runs += 1;
      for (const name of order) {
        await trx('learned').where({ name }).increment('expires_at', 1);
        haveFirst[own]!.resolve();
        await haveFirst[1 - own]!.promise;
      }
    });
  await Promise.all([update(['a', 'b'], 0), update(['b', 'a'], 1)]);
  t.true(runs >= 3);
  t.deepEqual(await db('learned').orderBy('name').pluck('expires_at'), [3, 3]);
});

test('SQLite: a group that waits for more joins the transaction of another work', async (t) => {
  const { db, add, transactions } = await ready(t, 'sqlite');
  const group = groupCommit(async (names: string[]) => Promise.all(names.map((name) => add(name))), {
    isComing: () => true,
    maxWaitMs: 60_000,
    onOccasion: (end) => beforeSharedCommit(db, end),
  });
  const waiting = [group('a'), group('b')];
  await new Promise((resolve) => setImmediate(resolve));
  t.deepEqual(transactions, []);
  await Promise.all([add('c'), ...waiting]);
  t.deepEqual(transactions, [1, 1, 1]);
});
